-- Changes records and appends their lines to the audit trail, or neither: there is no change without
-- its line, and no line without its change; but a revocation is made even if the trail is damaged.
--
-- KEYS[1]   the audit trail, a stream
-- KEYS[2..] the records to change, each once
-- ARGV[1]   'revoked', or ''
-- ARGV[2..] for each record in turn: its bytes as read ('' for none), its new bytes, its line
--           ('' where nothing changes, and the record is only written again)
--
-- Returns 1, or 0 if a record differs from the bytes read: then nothing is written. 2: done, without lines.
-- Lines go first: only they can fail (a trail of another type, or full), and such an error ends the script.

local records = #KEYS - 1
for at = 1, records do
  -- a record of another type is damaged: it was read as '', and is replaced
  local there = redis.pcall('GET', KEYS[at + 1])
  if type(there) ~= 'string' then
    there = ''
  end
  if there ~= ARGV[3 * at - 1] then
    return 0
  end
end
local done = 1
for at = 1, records do
  local text = ARGV[3 * at + 1]
  local line = text ~= '' and redis.pcall('XADD', KEYS[1], '*', 'line', text)
  if type(line) == 'table' and line.err then
    local why = tostring(line.err)
    local damaged = string.find(why, 'WRONGTYPE', 1, true) or string.find(why, 'exhausted', 1, true)
    if not damaged then
      return line
    end
    if ARGV[1] ~= 'revoked' then
      return redis.error_reply('DAMAGED ' .. why)
    end
    done = 2
  end
end
for at = 1, records do
  redis.call('SET', KEYS[at + 1], ARGV[3 * at])
end
return done
