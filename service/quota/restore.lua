-- Adds to a store the counts of one key and month that a backup has and the store lacks. Idempotent.
--
-- Every store has a generation, and its counts are the sum of its own and of those imported from
-- other generations. For each part, only the highest figure ever seen counts (a grow-only counter).
--
-- KEYS[1]  counts of the month: hash, field -> count
-- KEYS[2]  of these, what was imported: hash, "<generation>:<field>" -> count
-- KEYS[3]  flush sequences of the key (usage.lua): hash, worker id -> "<number of its last batch>:<when>"
-- KEYS[4]  the store's generation
-- KEYS[5]  when each key was last used: hash, key id -> minute since 1970
-- ARGV[1]  what KEYS[4] holds, or would hold
-- ARGV[2]  the generation that counted the figures of the backup
-- ARGV[3]  '1' to write, '0' to return what would be added
-- ARGV[4]  seconds after which a sequence expires
-- ARGV[5]  the figures, a line for each: field, count, field of the day's total or '-'; with spaces between
-- ARGV[6]  field of the month's total
-- ARGV[7]  the sequences, a line for each: worker id, number, when; with spaces between
-- ARGV[8]  id of the key
-- ARGV[9]  the minute, since 1970, in which the key was last used; -1 if it is not known
--
-- Returns how much was added, all outcomes together. An error leaves the store unchanged.

local now = tonumber(redis.call('TIME')[1])

local function damaged(where, text)
    return redis.error_reply('DAMAGED ' .. where .. ' holds ' .. string.sub(text, 1, 40))
end

local function whole(text)
    return string.match(text, '^%d+$') and #text <= 15 and tonumber(text)
end

local function hash(name)
    local found, all = {}, redis.call('HGETALL', name)
    for at = 1, #all, 2 do
        found[all[at]] = all[at + 1]
    end
    return found
end

if ARGV[3] == '1' and redis.call('GET', KEYS[4]) ~= ARGV[1] then
    return redis.error_reply('CHANGED the store was emptied meanwhile: import again')
end

local counts, imported = hash(KEYS[1]), hash(KEYS[2])
local elsewhere = {}
for name, text in pairs(imported) do
    local count, field = whole(text), string.match(name, '^%x+:(.+)$')
    if not count or not field then
        return damaged(KEYS[2] .. ' ' .. name, text)
    end
    elsewhere[field] = (elsewhere[field] or 0) + count
end

local own = ARGV[1] == ARGV[2]
local changes, added = {}, 0
for field, text, total in string.gmatch(ARGV[5], '(%S+) (%d+) (%S+)') do
    for _, name in ipairs({field, total, ARGV[6]}) do
        if counts[name] and not whole(counts[name]) then
            return damaged(KEYS[1] .. ' ' .. name, counts[name])
        end
    end
    local known = tonumber(imported[ARGV[2] .. ':' .. field] or 0)
    if own then
        known = math.max(0, tonumber(counts[field] or 0) - (elsewhere[field] or 0))
    end
    local missing = tonumber(text) - known
    if missing > 0 then
        changes[#changes + 1] = {field, text, total, missing}
        added = added + missing
    end
end
if ARGV[3] ~= '1' then
    return added
end

for worker, number, when in string.gmatch(ARGV[7], '(%S+) (%d+) (%d+)') do
    local last = string.match(redis.call('HGET', KEYS[3], worker) or '0:', '^(%d+):')
    if now - tonumber(when) <= tonumber(ARGV[4]) and last and tonumber(last) < tonumber(number) then
        redis.call('HSET', KEYS[3], worker, number .. ':' .. when)
    end
end
for _, change in ipairs(changes) do
    local field, text, total, missing = change[1], change[2], change[3], string.format('%.0f', change[4])
    redis.call('HINCRBY', KEYS[1], field, missing)
    if total ~= '-' then
        redis.call('HINCRBY', KEYS[1], total, missing)
        redis.call('HINCRBY', KEYS[1], ARGV[6], missing)
    end
    if not own then
        redis.call('HSET', KEYS[2], ARGV[2] .. ':' .. field, text)
    end
end
local before = redis.pcall('HGET', KEYS[5], ARGV[8])
if (tonumber(type(before) == 'string' and before or '') or -1) < tonumber(ARGV[9]) then
    redis.pcall('HSET', KEYS[5], ARGV[8], ARGV[9])
end
return added
