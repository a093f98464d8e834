-- Adds one batch of one key's counts, once, and returns the key's billable totals. If the key has a quota, grants the
-- worker requests of what is left.
--
-- KEYS[1]    flush sequences of the key: hash, worker id -> "<number of its last batch>:<when, seconds since 1970>"
-- KEYS[2]    counts of the month whose totals are returned: hash, field -> count
-- KEYS[3]    which store this is: hash, "id" -> its first writer, and when; an emptied store gets a new one
-- KEYS[4]    when each key was last used: hash, key id -> minute since 1970
-- KEYS[5..]  counts of the other months in the batch, and of its hours: hashes, field -> count; and, if the key has a
--            quota, its holds: hash, worker id -> "<requests>:<until, seconds since 1970>", and "sum" of all
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
-- ARGV[14]   place of the holds in KEYS; 0 if the key has no quota: the next ones are not used then
-- ARGV[15]   the quota, in requests
-- ARGV[16]   4 if it is of a day, 5 if it is of a month
-- ARGV[17]   requests that the worker may have admitted, without those in the batch and in the total
-- ARGV[18]   requests that it would like to admit
-- ARGV[19]   seconds for which it holds both
--
-- Replies {outcome, total of the day, total of the month, number of the worker's last batch here, id of the store, how
-- many of ARGV[18] are granted, number of the call}, where outcome is 1 if the batch was added now, 0 if it was before or
-- there is none, and 2 if the store lacks the batch before it: then nothing is added or granted. A replica that became
-- the primary lacks what it had not received.
-- A grant keeps this true: the total and the holds of all workers are at most the quota.
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

local batch, added = {}, {[ARGV[4]] = 0, [ARGV[5]] = 0}
for place, field, amount in string.gmatch(ARGV[6], '(%d+) (%S+) (%d+)') do
    local name = KEYS[tonumber(place)]
    local _, wrong = whole(redis.call('HGET', name, field), name .. ' ' .. field)
    if wrong then
        return wrong
    end
    batch[#batch + 1] = {name, field, amount}
    if name == KEYS[2] and added[field] then
        added[field] = added[field] + amount
    end
end
local totals = {}
for place = 4, 5 do
    local total, wrong = whole(redis.call('HGET', KEYS[2], ARGV[place]), KEYS[2] .. ' ' .. ARGV[place])
    if wrong then
        return wrong
    end
    totals[place] = total
end
if lacks then
    return {2, totals[4], totals[5], last or 0, id or '', 0, tonumber(ARGV[13])}
end
if adds then
    totals[4], totals[5] = totals[4] + added[ARGV[4]], totals[5] + added[ARGV[5]]
end

local holds = KEYS[tonumber(ARGV[14])]

-- Returns what the other workers hold, and removes holds that have ended. Damaged ones count as ended.
local function held_by_others()
    local all, sum = redis.call('HGETALL', holds), 0
    for at = 1, #all, 2 do
        local requests, ends = string.match(all[at + 1], '^(%d+):(%d+)$')
        if all[at] ~= ARGV[1] and all[at] ~= 'sum' then
            if ends and now <= tonumber(ends) then
                sum = sum + requests
            else
                redis.call('HDEL', holds, all[at])
            end
        end
    end
    return sum
end

-- Replaces the worker's hold; returns the grant. Only if the sum leaves too little are all holds read.
local function grant()
    local carried, wanted = tonumber(ARGV[17]), tonumber(ARGV[18])
    local rest = tonumber(ARGV[15]) - totals[tonumber(ARGV[16])] - carried
    local own = string.match(redis.call('HGET', holds, ARGV[1]) or '', '^(%d+):%d+$')
    local sum = tonumber(redis.call('HGET', holds, 'sum') or '')
    local others = sum and sum - (own or 0)
    if not others or wanted > rest - others then
        others = held_by_others()
    end
    local granted = math.max(0, math.min(wanted, rest - others))
    local hold = carried + granted
    if hold > 0 then
        redis.call('HSET', holds, ARGV[1], string.format('%d:%d', hold, now + ARGV[19]), 'sum', others + hold)
    elseif own then
        redis.call('HSET', holds, 'sum', others)
        redis.call('HDEL', holds, ARGV[1])
    end
    redis.pcall('EXPIRE', holds, ARGV[19] + 1)
    return granted
end

local granted = holds and grant() or 0
if not adds then
    return {0, totals[4], totals[5], last or 0, id or '', granted, tonumber(ARGV[13])}
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
    redis.call('HINCRBY', cell[1], cell[2], cell[3])
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
return {1, totals[4], totals[5], number, id, granted, tonumber(ARGV[13])}
