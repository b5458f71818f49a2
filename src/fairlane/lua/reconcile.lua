-- Recount a page of devices from their lists and seat them; on a healthy store nothing changes.
--
-- Returns  {next offset or -1 at the end, macs whose counts or place were wrong}
-- Errors   none
-- Twice    changes nothing
-- Flags    allow-oom
local offset, limit = tonumber(ARGV[2]), tonumber(ARGV[3])

local mended, counts = {}, read_counts()
local page = call('ZRANGE', MACS, offset, offset + limit - 1)
for _, mac in ipairs(page) do
  if #mend_device(mac, counts, '') > 0 then
    mended[#mended + 1] = mac
  end
end
return { #page < limit and -1 or offset + limit, mended }
