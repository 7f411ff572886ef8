package registry

// Presence is what is known of whether a verifier is there when audits are drawn for it.
type Presence struct {
	Answered int64  `cbor:"1,keyasint"`           // height at which it answered one last; 0: never
	Price    uint64 `cbor:"2,keyasint"`           // that it was paid for that, in uzen per 10^15 operations
	Missed   int64  `cbor:"3,keyasint,omitempty"` // height at which it missed the deadline of one last; 0: never
}

// standbyEpochs are the epochs for which an answer shows that a verifier is there. A small stake is drawn seldom.
const standbyEpochs = 24

// Shows reports whether a verifier has shown that it is there: it answered lately, and missed nothing in the epoch that
// ends at a height.
func (p Presence) Shows(params Params, height int64) (answered, missed bool) {
	return p.Answered > 0 && height-p.Answered < standbyEpochs*params.EpochBlocks,
		p.Missed > 0 && height-p.Missed < params.EpochBlocks
}
