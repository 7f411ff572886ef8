package seating

import "github.com/starling-network/starling/protocol/run/reason"

// LeaveUnattested excludes members where the job requires attested machines, and no attestation with a listed
// measurement holds for theirs in this block. Other members take their open units and audits over, and they may come
// back once their machines are attested again.
func (d *Seats) LeaveUnattested() {
	if !d.Terms.Attested.Required {
		return
	}
	for _, m := range d.Members {
		if m.Participating() && !d.Env.Attests(d.Terms.Attested, m.ID) {
			d.Leave(m.ID, reason.Unattested)
		}
	}
}
