-- List the tokens that have not expired, those that end first before the others.
--
-- Returns  records, each as field, value, … with the token's id first
-- Errors   none
-- Twice    reads again
-- Flags    no-writes
local offset, limit = ARGV[2], ARGV[3]
local listed = {}
for _, id in ipairs(call('ZRANGE', TOKENS, now, '+inf', 'BYSCORE', 'LIMIT', offset, limit)) do
  local record = call('HGETALL', TOKEN .. id)
  if #record > 0 then
    table.insert(record, 1, id)
    listed[#listed + 1] = record
  end
end
return listed
