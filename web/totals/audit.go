// Package totals adds up the receipts of a run: what its members did and were paid, how its audits ended, and what its
// rounds cost. It reads a History and asks no source.
package totals

import (
	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/protocol/reward"
)

// CountAudit counts an audit by the reason of its receipt.
func CountAudit(c *api.AuditCounts, reason string) {
	c.Drawn++
	switch reward.AuditOutcome(reason) {
	case reward.Passed:
		c.Passed++
	case reward.Found:
		c.Failed++
	case reward.Missed:
		c.Missed++
	default:
		c.Moot++
	}
}

// AddAudits adds counts to others.
func AddAudits(c *api.AuditCounts, more api.AuditCounts) {
	c.Drawn += more.Drawn
	c.Passed += more.Passed
	c.Failed += more.Failed
	c.Moot += more.Moot
	c.Missed += more.Missed
}
