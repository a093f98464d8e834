-- wrk: asks for the ZIP codes of a file in turn. From the environment: ZIPS (the file), START (how many to skip), KEY,
-- or KEYS (a file of keys to use in turn), BEFORE and AFTER (the target around the ZIP code), UNIQUE (not empty: with
-- headers that differ on every request) and SEED (16 hexadecimal digits, different in every run).
local unique = os.getenv("UNIQUE") ~= ""
local seed = os.getenv("SEED")
local position = tonumber(os.getenv("START") or "0")
local count = 0
local requests = {}
local keys = {}

-- digits ready made, so that the client spends little on them
local hex, decimal = {}, {}
for number = 0, 4095 do
  hex[number] = string.format("%03x", number)
end
for number = 0, 255 do
  decimal[number] = tostring(number)
end

local function lines_of(path)
  local lines = {}
  for line in io.lines(path) do
    lines[#lines + 1] = line
  end
  return lines
end

function init()
  local own = os.getenv("KEYS") ~= ""
  local headers = own and {} or { ["x-api-key"] = os.getenv("KEY") }
  keys = own and lines_of(os.getenv("KEYS")) or nil
  for _, zip in ipairs(lines_of(os.getenv("ZIPS"))) do
    local text = wrk.format("GET", os.getenv("BEFORE") .. zip .. os.getenv("AFTER"), headers)
    requests[#requests + 1] = (unique or own) and text:sub(1, -3) or text
  end
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
  local text = requests[position]
  if keys then
    text = text .. "x-api-key: " .. keys[count % #keys + 1] .. "\r\n" .. (unique and "" or "\r\n")
  end
  return unique and text .. told_apart() or text
end

function done(summary, latency)
  local errors = summary.errors
  local bad = errors.status + errors.connect + errors.read + errors.write + errors.timeout
  io.write(string.format("RESULT %d %d %d %d %d %d\n", summary.requests, summary.duration, bad,
    latency:percentile(50), latency:percentile(99), summary.bytes))
end
