-- Lookups at deterministic moments, and what wrk counted as one line of JSON.
-- Arguments: the path, to which the moment is appended; its mode: last, random or fixed; the seed; "statuses", to
-- count every response by its status, which costs the client time, or "-"; the mean of the random pause of a connection
-- before each request, in milliseconds, or 0.
-- wrk is run with one thread.
local only_thread

function setup(thread)
   only_thread = thread
end

function init(args)
   prefix, mode = args[1], args[2]
   math.randomseed(tonumber(args[3]))
   counts_statuses = args[4] == "statuses"
   statuses = ""
   pause = tonumber(args[5])
   if pause == 0 then delay = nil end
   by_status = {}
   if not counts_statuses then response = nil end
end

local function moment()
   if mode == "last" then return "&majorIOV=2147483647&minorIOV=2147483647" end
   return string.format("&majorIOV=%d&minorIOV=%d", math.random(0, 2147483647), math.random(0, 2147483647))
end

function request()
   if mode == "fixed" then return wrk.format("GET", prefix) end
   return wrk.format("GET", prefix .. moment())
end

function delay()
   return math.floor(2 * pause * math.random())
end

function response(status)
   by_status[status] = (by_status[status] or 0) + 1
   -- Only plain values can be read from outside of the thread.
   local parts = {}
   for code, count in pairs(by_status) do table.insert(parts, string.format('"%d": %d', code, count)) end
   statuses = table.concat(parts, ", ")
end

function done(summary, latency)
   local errors = summary.errors
   local line = '\nREPORT {"requests": %d, "seconds": %.6f, "bytes": %d, "broken": %d, "refused": %d, "timeouts": %d, '
      .. '"p50": %.4f, "p95": %.4f, "p99": %.4f, "max": %.4f, "statuses": {%s}}\n'
   io.write(string.format(line, summary.requests, summary.duration / 1e6, summary.bytes,
      errors.connect + errors.read + errors.write, errors.status, errors.timeout, latency:percentile(50) / 1e3,
      latency:percentile(95) / 1e3, latency:percentile(99) / 1e3, latency.max / 1e3, only_thread:get("statuses") or ""))
end
