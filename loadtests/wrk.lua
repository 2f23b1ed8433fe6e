-- Lookups at random moments, and what wrk counted as one line of JSON.
-- Arguments: the path, to which the moment is appended; random, or fixed for the path as it is; the seed.
-- wrk is run with one thread.
local only_thread

function setup(thread)
   only_thread = thread
end

function init(args)
   prefix, mode = args[1], args[2]
   math.randomseed(tonumber(args[3]))
   statuses = ""
   by_status = {}
end

function request()
   if mode == "fixed" then return wrk.format("GET", prefix) end
   local moment = string.format("&majorIOV=%d&minorIOV=%d", math.random(0, 2147483647), math.random(0, 2147483647))
   return wrk.format("GET", prefix .. moment)
end

function response(status)
   local is_new = by_status[status] == nil
   by_status[status] = (by_status[status] or 0) + 1
   -- Only plain values can be read from outside of the thread. Those of an error are few.
   if is_new or status ~= 200 then
      local parts = {}
      for code, count in pairs(by_status) do
         if code ~= 200 then table.insert(parts, string.format('"%d": %d', code, count)) end
      end
      statuses = table.concat(parts, ", ")
   end
end

function done(summary, latency)
   local errors = summary.errors
   local line = '\nREPORT {"requests": %d, "seconds": %.6f, "errors": %d, "broken": %d, "p50": %.4f, "p99": %.4f, "max": %.4f, '
      .. '"statuses": {%s}}\n'
   local broken = errors.connect + errors.read + errors.write + errors.timeout
   io.write(string.format(line, summary.requests, summary.duration / 1e6, broken + errors.status, broken,
      latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, latency.max / 1e3, only_thread:get("statuses") or ""))
end
