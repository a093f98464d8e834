-- Notes that an instance lives; tells which others do, which purge was the last, and what time it is here.
--
-- KEYS[1]  the instances on this key store: hash, id -> "<when it last beat, seconds since 1970>:<its record, JSON>";
--          and "purged" -> mark of the last purge
-- ARGV[1]  id of the instance
-- ARGV[2]  its record; '' when it ends
-- ARGV[3]  seconds of silence after which an instance counts as dead
-- ARGV[4]  seconds for which a record that is the same is not written again
-- ARGV[5]  mark of a purge that the instance orders, or ''
--
-- Replies {seconds since 1970, microseconds, mark of the last purge or '', record, record, ...}.

local time = redis.call('TIME')
local now = tonumber(time[1])

local function parsed(value)
    local at, record = string.match(value, '^(%d+):(.*)$')
    return tonumber(at), record
end

if ARGV[5] ~= '' then
    redis.call('HSET', KEYS[1], 'purged', ARGV[5])
end
local at, record = parsed(redis.call('HGET', KEYS[1], ARGV[1]) or '')
if ARGV[2] == '' then
    redis.call('HDEL', KEYS[1], ARGV[1])
elseif record ~= ARGV[2] or math.abs(now - at) > tonumber(ARGV[4]) then
    redis.call('HSET', KEYS[1], ARGV[1], string.format('%d:', now) .. ARGV[2])
end

local reply = {time[1], time[2], ''}
local all = redis.call('HGETALL', KEYS[1])
for field = 1, #all, 2 do
    local id, value = all[field], all[field + 1]
    at, record = parsed(value)
    if id == 'purged' then
        reply[3] = value
    elseif not at or math.abs(now - at) > tonumber(ARGV[3]) then
        redis.call('HDEL', KEYS[1], id)
    else
        reply[#reply + 1] = record
    end
end
return reply
