-- Changes records and appends the lines that say so to the audit trail, or does nothing: there is no change without
-- its line, and no line without its change.
--
-- KEYS[1]   the audit trail, a stream
-- KEYS[2..] the records to change, each once
-- ARGV      for each record in turn: its bytes as they were read ('' where there was none), its new bytes, its line
--
-- Returns 1, or 0 where a record is not as it was read: then nothing is written.
-- Lines go first: they are what can fail (a trail of another type), and an error there ends the script.

local records = #KEYS - 1
for at = 1, records do
  if (redis.call('GET', KEYS[at + 1]) or '') ~= ARGV[3 * at - 2] then
    return 0
  end
end
for at = 1, records do
  redis.call('XADD', KEYS[1], '*', 'line', ARGV[3 * at])
end
for at = 1, records do
  redis.call('SET', KEYS[at + 1], ARGV[3 * at - 1])
end
return 1
