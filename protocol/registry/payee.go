package registry

import (
	"cmp"
	"fmt"
)

// Payee is the account that is paid in place of a participant, for its work and when its stake is withdrawn.
type Payee struct {
	ID   string `cbor:"1,keyasint,omitempty"` // empty: the participant is paid itself
	Next string `cbor:"2,keyasint,omitempty"` // in place of ID
	From int64  `cbor:"3,keyasint,omitempty"` // height from which Next is paid; 0: no change waits
}

// At is the payee at a height: a change whose time has come is made.
func (p Payee) At(height int64) Payee {
	if p.From > 0 && height >= p.From {
		return Payee{ID: p.Next}
	}
	return p
}

// Pays is the account that is paid for a participant at a height. A machine of a fleet has no payee but its owner.
func Pays(p Participant, height int64) string {
	return cmp.Or(p.Machine.Owner, p.Payee.At(height).ID, p.ID)
}

// Set names the account that is paid in place of a participant self; none: the participant. It returns the height from
// which that holds. The named account changes it at once. So does a participant that no other account is paid for;
// where one is named, its change takes wait blocks: a stolen key of the participant moves nothing before its owner can
// answer with the key of the payee, whose message replaces a change that waits.
func (p Payee) Set(self, by, payee string, wait, height int64) (Payee, int64, error) {
	p = p.At(height)
	if payee == self {
		payee = ""
	}
	switch {
	case by != self && (p.ID == "" || by != p.ID):
		return p, 0, fmt.Errorf("%w: %s is not paid for %s, and is not that account", ErrPayee, by, self)
	case by == self && p.ID != "" && payee != p.ID:
		p.Next, p.From = payee, height+wait
		return p, p.From, nil
	}
	return Payee{ID: payee}, height, nil
}
