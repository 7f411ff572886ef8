package spec

import (
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/bundle"
)

// screens are the values of strategy.verification.screen.
var screens = map[string]terms.Screen{"off": terms.ScreenOff, "updates": terms.ScreenUpdates,
	"losses": terms.ScreenLosses}

// Checks are what the file says about verification, but for the tolerance and the slices, which depend on its program.
func (v Verification) Checks() bundle.Checks {
	return bundle.Checks{AuditPPM: v.AuditPPM(), Drawn: v.Audit == "partial", Screen: screens[v.Screen],
		Attested: v.Attested.Terms()}
}

// AuditPPM is the floor of the audit rate, in parts per million.
func (v Verification) AuditPPM() uint32 {
	switch v.Mode {
	case "none":
		return 0
	case "full":
		return 1e6
	}
	return uint32(v.Fraction*1e6 + 0.5)
}
