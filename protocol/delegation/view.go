package delegation

// View is a pool as the chain shows it.
type View struct {
	Pool
	Own     uint64  `cbor:"20,keyasint,omitempty"` // stake of the participant itself that stays, uzen
	Staying uint64  `cbor:"21,keyasint,omitempty"` // delegated stake that is paid, uzen
	Backing uint64  `cbor:"22,keyasint,omitempty"` // of it, that counts where seats are drawn
	Room    uint64  `cbor:"23,keyasint,omitempty"` // that may still be delegated, uzen
	Purses  []Purse `cbor:"24,keyasint,omitempty"` // in order of denomination
}

// ViewOf is a pool at a height, with the stake of its participant that stays, and what it holds of the pay.
func ViewOf(p Pool, own uint64, open bool, purses []Purse, height int64) View {
	v := View{Pool: p.At(height), Own: own, Staying: p.Staying(), Backing: p.Backing(own), Purses: purses}
	if open {
		v.Room = p.Room(own)
	}
	return v
}

// Part is a delegation as the chain shows it.
type Part struct {
	Delegation
	Stays  uint64 `cbor:"20,keyasint,omitempty"` // uzen that the shares are worth which are paid
	Leaves uint64 `cbor:"21,keyasint,omitempty"` // uzen that the others are worth now
	Due    []Due  `cbor:"22,keyasint,omitempty"` // pay that is not claimed, in order of denomination
}
