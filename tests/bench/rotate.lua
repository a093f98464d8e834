-- wrk: asks for the ZIP codes of a file (ZIPS) in turn, with the key in KEY; START is where the first one begins.
local zips = {}
for line in io.lines(os.getenv("ZIPS")) do
  zips[#zips + 1] = line
end
local headers = { ["x-api-key"] = os.getenv("KEY") }
local position = tonumber(os.getenv("START") or "0")

function request()
  position = position % #zips + 1
  return wrk.format("GET", "/v1/population-housing-forecast?zip_code=" .. zips[position], headers)
end

function done(summary, latency)
  local errors = summary.errors
  local bad = errors.status + errors.connect + errors.read + errors.write + errors.timeout
  io.write(string.format("RESULT %d %d %d %d\n", summary.requests, summary.duration, bad, latency:percentile(99)))
end
