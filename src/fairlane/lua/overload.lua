-- Tell whether the system is overloaded, by the document's formula (section 4.4).
--
-- Returns  {1 if overloaded, global pending, devices over their limit}
-- Errors   none
-- Twice    reads again
-- Flags    no-writes
local pending, over = count(call('GET', GLOBAL_PENDING)) or 0, call('SCARD', OVERLOADED)
return { (pending > C.max_total_pending or over > 0) and 1 or 0, pending, over }
