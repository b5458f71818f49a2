-- Find sums over all devices and tasks that are wrong.
--
-- Returns  {flaws {'store', what, stored, right}…, what is too much for one step {what, count}…}
-- Errors   none
-- Twice    reads again
-- Flags    no-writes
local flaws = audit_sums()
for _, flaw in ipairs(flaws) do
  flaw[5] = nil
end
return { flaws, left_out() }
