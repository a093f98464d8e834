-- wrk: sends the requests of a file in turn. From the environment: REQUESTS (the file), START (how many to skip), UNIQUE
-- (not empty: with headers that differ on every request) and SEED (16 hexadecimal digits, different in every run).
local unique = os.getenv("UNIQUE") ~= ""
local seed = os.getenv("SEED")
local position = tonumber(os.getenv("START") or "0")
local count = 0
local requests = {}

-- digits ready made, so that the client spends little on them
local hex, decimal = {}, {}
for number = 0, 4095 do
  hex[number] = string.format("%03x", number)
end
for number = 0, 255 do
  decimal[number] = tostring(number)
end

function init()
  local file = io.open(os.getenv("REQUESTS"), "rb")
  for head in file:read("*a"):gmatch("(.-\r\n)\r\n") do
    requests[#requests + 1] = unique and head or head .. "\r\n"
  end
  file:close()
end

local function told_apart()
  local high, low = hex[math.floor(count / 4096) % 4096], hex[count % 4096]
  return "x-request-id: " .. seed .. high .. low
    .. "\r\ntraceparent: 00-" .. seed .. "0000000000" .. high .. low .. "-0000000000" .. high .. low .. "-01"
    .. "\r\nx-forwarded-for: 10." .. decimal[math.floor(count / 65536) % 256]
    .. "." .. decimal[math.floor(count / 256) % 256] .. "." .. decimal[count % 256] .. "\r\n\r\n"
end

function request()
  count = count + 1
  position = position % #requests + 1
  return unique and requests[position] .. told_apart() or requests[position]
end

-- refused: answers of 400 and more; failed: whatever was no answer
function done(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.timeout
  io.write(string.format("RESULT %d %d %d %d %d %d %d\n", summary.requests, summary.duration, errors.status, failed,
    latency:percentile(50), latency:percentile(99), summary.bytes))
end
