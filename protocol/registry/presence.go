package registry

// Presence is the record of a verifier's answers to audits that were drawn for it.
type Presence struct {
	Answered int64  `cbor:"1,keyasint"`           // height at which it answered one last; 0: never
	Price    uint64 `cbor:"2,keyasint"`           // that it was paid for that, in uzen per 10^15 operations
	Missed   int64  `cbor:"3,keyasint,omitempty"` // height at which it missed the deadline of one last; 0: never
}

// standbyEpochs is for how many epochs an answer shows that a verifier is online. A small stake is drawn seldom.
const standbyEpochs = 24

// Shows reports whether a verifier is online: it answered lately, and missed no audit in the epoch that ends at a
// height.
func (p Presence) Shows(params Params, height int64) (answered, missed bool) {
	return p.Answered > 0 && height-p.Answered < standbyEpochs*params.EpochBlocks,
		p.Missed > 0 && height-p.Missed < params.EpochBlocks
}
