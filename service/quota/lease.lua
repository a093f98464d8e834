-- Grants tokens of a key by the generic cell rate algorithm (gcra.py decides the same; the tests hold them equal).
--
-- KEYS[1]  the key's bucket: its theoretical arrival time, whole microseconds of this server's clock, as digits
-- ARGV[1]  requests \ the rate, in lowest terms: ARGV[1] requests
-- ARGV[2]  micros   / in ARGV[2] microseconds
-- ARGV[3]  burst: tokens of a full bucket; burst * micros is below 2^52, so that every number here is exact
-- ARGV[4]  wanted: number of tokens, at least 1
-- ARGV[5]  least: if there are fewer than this, none is granted; 1 to wanted
-- ARGV[6]  number of the call, which is returned, so that a reply shows its call
--
-- Returns  {granted, remaining (whole tokens), retry_after (microseconds until there are least; 0 if all were granted),
--           now (microseconds), number of the call}
--
-- A bucket that is not a number, or of another type, is full; one that lies too far ahead is empty, and fills from now
-- on. The record expires a second after it matters: after its arrival time the bucket is full, as without a record.

local requests = tonumber(ARGV[1])
local micros = tonumber(ARGV[2])
local burst = tonumber(ARGV[3])
local wanted = tonumber(ARGV[4])
local least = tonumber(ARGV[5])

local function cost(tokens)
    return math.ceil(tokens * micros / requests)
end

local function whole(free)
    return math.min(math.floor(free * requests / micros), burst)
end

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])

-- pcall: a record of another type is an error, which must not block the key
local record = redis.pcall('GET', KEYS[1])
local tat = now
if type(record) == 'string' and string.match(record, '^%d+$') and #record <= 16 then
    tat = tonumber(record)
end

local horizon = cost(burst)
local owed = math.min(math.max(tat - now, 0), horizon)
local granted = math.min(wanted, whole(horizon - owed))
if granted < least then
    granted = 0
end
local found = now + owed
owed = owed + cost(granted)
local free = horizon - owed

-- without a grant, only a repaired bucket is written: a refusal costs no write
if granted > 0 or (tat ~= found and tat > now) then
    redis.call('SET', KEYS[1], string.format('%.0f', now + owed), 'PX', math.ceil(owed / 1000) + 1000)
end

local retry_after = 0
if granted < wanted then
    retry_after = math.max(cost(least) - free, 1)
end
return {granted, whole(free), retry_after, now, tonumber(ARGV[6])}
