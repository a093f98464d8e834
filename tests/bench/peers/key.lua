-- nginx: is the x-api-key of this request known? A key K is known if Redis has `peer-key:K`; any other is a 401.
-- `redis` is the address of that Redis, like unix:/run/redis; it is set once, before the workers start.
local _M = { redis = nil }

local SECONDS = 5 -- how long a key that was found is believed
local FORGOTTEN = 60 -- nobody asked with it for so many seconds
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

-- asks Redis once in 5 s. What is kept is until when a key is believed; whoever comes after that asks, and all others
-- believe it for a second more: thousands of connections would be more than Redis takes at once.
function _M.kept()
  local key = ngx.var.http_x_api_key
  if not key then
    return ngx.exit(401)
  end
  local now = ngx.now()
  local believed = known:get(key)
  if believed and believed > now then
    return
  end
  if believed then
    known:set(key, now + 1, FORGOTTEN)
  end
  if ask(key) then
    known:set(key, now + SECONDS, FORGOTTEN)
  end
end

return _M
