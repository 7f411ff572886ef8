package reward

// Outcome is how an audit ended.
type Outcome uint8

// Outcomes of audits: every audit has one.
const (
	Passed Outcome = iota + 1 // it found the same bits
	Found                     // it found a fault
	Moot                      // it was settled otherwise before it was answered
	Missed                    // it was not answered, or not rightly
)

// AuditOutcome says how an audit ended, by the reason of its receipt.
func AuditOutcome(reason string) Outcome {
	switch reason {
	case Verified, TooSmall, BudgetExhausted:
		return Passed
	case FaultFound, NothingShown, FoundOutside:
		return Found
	case AuditMissed, VerifierLeft, Left, FalseChallenge, SealUnopened, PlantPassed:
		return Missed
	}
	return Moot
}
