// Package gas computes the gas that transactions declare: from a table, and from the gas that earlier transactions of
// the account used. It asks no chain.
package gas

import (
	"sync"

	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/gogoproto/proto"

	"github.com/starling-network/starling/chain/referee"
	"github.com/starling-network/starling/chain/referee/answered"
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/chain/x/catalog/catalogpb"
	"github.com/starling-network/starling/chain/x/hosting/hostingpb"
	"github.com/starling-network/starling/chain/x/market/marketpb"
	"github.com/starling-network/starling/chain/x/training"
	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/chain/x/training/works"
	"github.com/starling-network/starling/protocol/answer"
)

// Most is the highest limit of a transaction that a chain of ours takes (room.MaxGas).
const Most = 100_000_000

// Gas that messages usually need, measured (docs/market.md), with a margin: for each message, for each of its bytes,
// and in addition for a message of a run, which changes the state of the run, and for a message that opens the work of
// a job, which pays for reading it.
const (
	perMessage = 300_000
	perByte    = 48
	perRun     = 200_000
	perOpening = 12_000_000 // and what the check of an ordered work costs
	perProof   = 6_000_000  // for a proof, or its verifying key
)

// Limit is the gas that messages may need, as far as can be said without the state of the chain.
func Limit(msgs ...sdk.Msg) uint64 {
	sum := uint64(0)
	for _, m := range msgs {
		sum += base(m)
		rank, _ := training.Owed(m)
		opens := false
		switch m.(type) {
		case *marketpb.MsgOrder, *hostingpb.MsgAccuse, *hostingpb.MsgMove:
			opens = true
		}
		switch {
		case opens || rank == 1 || rank == 2:
			sum += perOpening
		case rank > 0:
			sum += perRun
		}
	}
	return min(sum, Most)
}

// check is the gas of the check that all disputes about an ordered work can be decided, or 0 if a chain refuses the
// work before.
func check(m *marketpb.MsgOrder) uint64 {
	spec, err := runpb.Digest(m.Terms.Spec)
	if err != nil {
		return 0
	}
	r, err := referee.Open(spec, m.Opening, 0)
	if err != nil {
		return 0
	}
	cost, _ := r.Decidable(evidence.MaxCheck)
	return works.GasCheck * cost
}

// checkCase is check for an accusation.
func checkCase(m *hostingpb.MsgAccuse) uint64 {
	s, err := answer.Decode(m.Receipt)
	if err != nil {
		return 0
	}
	c, err := answered.Open(s.Receipt, m.From, m.Program)
	if err != nil {
		return 0
	}
	cost, _ := c.Decidable(evidence.MaxCheck)
	return works.GasCheck * cost
}

// base is the gas that any message of its size may need, and one whose work is checked.
func base(m sdk.Msg) uint64 {
	sum := uint64(perMessage)
	switch m := m.(type) {
	case *marketpb.MsgOrder:
		sum += check(m)
	case *hostingpb.MsgAccuse:
		sum += checkCase(m)
	case *catalogpb.MsgRegisterKey, *catalogpb.MsgProve:
		sum += perProof
	}
	if sized, ok := m.(proto.Sizer); ok {
		sum += perByte * uint64(sized.Size())
	}
	return sum
}

// Usage remembers what gas the account's transactions took, by the kind of their messages, so that the next declares
// what it needs.
type Usage struct {
	mu    sync.Mutex
	needs map[string]uint64 // of a message
}

// Limit is the gas that messages may need, from the gas that earlier ones used, and no less than any message of their
// sizes may need: a message that is larger than earlier ones, or writes more, does not run short.
func (u *Usage) Limit(msgs []sdk.Msg) uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	sum := uint64(0)
	for _, m := range msgs {
		if need, known := u.needs[sdk.MsgTypeURL(m)]; known {
			sum += max(need, base(m))
		} else {
			sum += Limit(m)
		}
	}
	return min(sum, Most)
}

// ample is how many times what messages took the next ones of their kind may take.
const ample = 3

// Learn takes the gas that a transaction used of its limit. One that ran short needs a multiple of that; the need of a
// kind falls slowly. The part that grows with the bytes is left to Limit.
func (u *Usage) Learn(msgs []sdk.Msg, limit, used uint64, short bool) {
	need := ample * used
	if short {
		need = 4 * max(limit, used)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.needs == nil {
		u.needs = map[string]uint64{}
	}
	for _, m := range msgs {
		url := sdk.MsgTypeURL(m)
		if rank, _ := training.Owed(m); !short && rank < 3 {
			continue
		}
		each, before := min(need/uint64(len(msgs)), Most), u.needs[url]
		u.needs[url] = max(each, before-before/8)
	}
}
