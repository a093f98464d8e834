-- Keeps the newest errors of a key, newest first. One call, so that no list is ever without a time to live.
--
-- KEYS[1]    the key's list
-- ARGV[1]    how many are kept
-- ARGV[2]    seconds after the last one until the list expires
-- ARGV[3..]  at least one error, oldest first; at most as many as are kept
--
-- Returns  how many were there for a moment

local length = redis.call('LPUSH', KEYS[1], unpack(ARGV, 3))
redis.call('LTRIM', KEYS[1], 0, tonumber(ARGV[1]) - 1)
redis.call('EXPIRE', KEYS[1], tonumber(ARGV[2]))
return length
