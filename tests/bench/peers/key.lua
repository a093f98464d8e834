-- nginx: is the x-api-key of this request known? A key K is known if Redis has `peer-key:K`; any other is a 401.
-- `redis` is the address of that Redis, like unix:/run/redis; it is set once, before the workers start.
local _M = { redis = nil }

local SECONDS = 5 -- how long a key that was found is believed
local POOL, IDLE_MILLISECONDS = 64, 60000
local known = ngx.shared.keys

-- one GET on a pooled connection; whether it found something, or nil where Redis did not answer
local function found(key)
  local socket = ngx.socket.tcp()
  if not socket:connect(_M.redis) then
    return nil
  end
  local name = "peer-key:" .. key
  socket:send("*2\r\n$3\r\nGET\r\n$" .. #name .. "\r\n" .. name .. "\r\n")
  local head = socket:receive("*l")
  if not head then
    return nil
  end
  local length = tonumber(head:match("^%$(%-?%d+)$"))
  if length and length >= 0 then
    socket:receive(length + 2)
  end
  socket:setkeepalive(IDLE_MILLISECONDS, POOL)
  return length ~= nil and length >= 0
end

local function ask(key)
  local is_known = found(key)
  if is_known == nil then
    return ngx.exit(503)
  end
  return is_known or ngx.exit(401)
end

-- asks Redis on every request
function _M.asked()
  local key = ngx.var.http_x_api_key
  return key and ask(key) or ngx.exit(401)
end

-- asks Redis once in 5 s; of those that find a key too old, one asks and the others believe it once more
function _M.kept()
  local key = ngx.var.http_x_api_key
  if not key then
    return ngx.exit(401)
  end
  local is_known, _, is_stale = known:get_stale(key)
  if is_known and (not is_stale or not known:add("asked " .. key, true, 1)) then
    return
  end
  if ask(key) then
    known:set(key, true, SECONDS)
  end
end

return _M
