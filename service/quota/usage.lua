-- Adds one batch of one key's counts, once, and returns the key's billable totals.
--
-- KEYS[1]    flush sequences of the key: hash, worker id -> "<number of its last batch>:<when, seconds since 1970>"
-- KEYS[2]    counts of the month whose totals are returned: hash, field -> count
-- KEYS[3]    which store this is: hash, "id" -> its first writer, and when; an emptied store gets a new one
-- KEYS[4]    when each key was last used: hash, key id -> minute since 1970
-- KEYS[5..]  counts of the other months in the batch, and of its hours: hashes, field -> count
-- ARGV[1]    worker id
-- ARGV[2]    number of the batch, rising from 1 for each worker; 0 to only read totals
-- ARGV[3]    seconds after which the sequence of a silent worker expires
-- ARGV[4]    field of KEYS[2] with the total of the day
-- ARGV[5]    field of KEYS[2] with the total of the month
-- ARGV[6]    the batch, a line for each count: place in KEYS, field, how much to add; with spaces between
-- ARGV[7]    the same by hour
-- ARGV[8]    seconds after the last count until a record of hours expires
-- ARGV[9]    number of the worker's batch before this one, or of its last one if there is none; 0 if it names none
-- ARGV[10]   id of the store that has that one; another store is not checked for it
-- ARGV[11]   id of the key
-- ARGV[12]   the last minute, since 1970, that the batch may be from: it may have waited
-- ARGV[13]   number of the call, which is returned, so that a reply shows its call
--
-- Replies {outcome, total of the day, total of the month, number of the worker's last batch here, id of the store, number
-- of the call}, where outcome is 1 if the batch was added now, 0 if it was before or there is none, and 2 if the
-- store lacks the batch before it: then nothing is added. A replica that became the primary lacks what it
-- had not received.
-- An error leaves the store unchanged: everything is read and checked before the first write. Only the hours are not:
-- no bill is made of them, and an error in them must not make a bill wrong.

-- The clock is the server's, one for all workers.
local time = redis.call('TIME')
local now = tonumber(time[1])

-- Fifteen digits are exact in Lua's numbers.
local function whole(text, where)
    if not text then
        return 0
    end
    if not string.match(text, '^%d+$') or #text > 15 then
        return nil, redis.error_reply('DAMAGED ' .. where .. ' holds ' .. string.sub(text, 1, 40))
    end
    return tonumber(text)
end

local function seen(worker)
    local text = redis.call('HGET', KEYS[1], worker)
    if not text then
        return nil
    end
    local number = string.match(text, '^(%d+):%d+$')
    if not number or #number > 15 then
        return nil, redis.error_reply('DAMAGED ' .. KEYS[1] .. ' ' .. worker .. ' holds ' .. string.sub(text, 1, 40))
    end
    return tonumber(number)
end

-- Only when a new worker appears, so that the hash cannot grow and other calls do not pay for it.
local function forget_old()
    local all = redis.call('HGETALL', KEYS[1])
    for at = 1, #all, 2 do
        local time = string.match(all[at + 1], '^%d+:(%d+)$')
        if time and now - tonumber(time) > tonumber(ARGV[3]) then
            redis.call('HDEL', KEYS[1], all[at])
        end
    end
end

local id = redis.call('HGET', KEYS[3], 'id')
local number = tonumber(ARGV[2])
local last, damage = seen(ARGV[1])
if damage then
    return damage
end
local adds = number > (last or 0)
local lacks = id == ARGV[10] and tonumber(ARGV[9]) > (last or 0)

local batch = {}
for place, field, amount in string.gmatch(ARGV[6], '(%d+) (%S+) (%d+)') do
    local name = KEYS[tonumber(place)]
    local _, wrong = whole(redis.call('HGET', name, field), name .. ' ' .. field)
    if wrong then
        return wrong
    end
    batch[#batch + 1] = {name, field, amount}
end
local totals = {}
for place = 4, 5 do
    local total, wrong = whole(redis.call('HGET', KEYS[2], ARGV[place]), KEYS[2] .. ' ' .. ARGV[place])
    if wrong then
        return wrong
    end
    totals[place] = total
end
if lacks or not adds then
    return {lacks and 2 or 0, totals[4], totals[5], last or 0, id or '', tonumber(ARGV[13])}
end

if not last then
    forget_old()
end
if not id then
    id = ARGV[1] .. ':' .. now .. '.' .. time[2]
    redis.call('HSET', KEYS[3], 'id', id)
end
redis.call('HSET', KEYS[1], ARGV[1], string.format('%d:%d', number, now))
for _, cell in ipairs(batch) do
    local name, field = cell[1], cell[2]
    local count = redis.call('HINCRBY', name, field, cell[3])
    for place = 4, 5 do
        if name == KEYS[2] and field == ARGV[place] then
            totals[place] = count
        end
    end
end

-- A record of hours that cannot be given an expiry is not written, so that none stays forever.
local ends = {}
for place, field, amount in string.gmatch(ARGV[7], '(%d+) (%S+) (%d+)') do
    local name = KEYS[tonumber(place)]
    ends[name] = ends[name] or redis.pcall('EXPIRE', name, ARGV[8])
    if type(ends[name]) == 'number' then
        redis.pcall('HINCRBY', name, field, amount)
        if ends[name] == 0 then
            ends[name] = redis.pcall('EXPIRE', name, ARGV[8])
        end
    end
end

-- No bill depends on it: an error in it is ignored.
local minute = math.min(math.floor(now / 60), tonumber(ARGV[12]))
local before = redis.pcall('HGET', KEYS[4], ARGV[11])
if (tonumber(type(before) == 'string' and before or '') or -1) < minute then
    redis.pcall('HSET', KEYS[4], ARGV[11], minute)
end
return {1, totals[4], totals[5], number, id, tonumber(ARGV[13])}
