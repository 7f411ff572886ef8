package training

import (
	"context"
	"fmt"
	"slices"
	"sync"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/dispute"
)

// Gas of a message that asks a referee, beside that of its bytes: to open the work, which reads and checks a program of
// a stranger, and to answer a question. It is the same whether the work is remembered or not.
const (
	gasOpen  = 2_000_000 // and one for every byte of the opening
	gasJudge = 1_000_000
)

// remembers is how many works a node remembers at most.
const remembers = 8

// works are the last works that were opened. What a work is follows from the digest of its specification alone, which
// binds all of its opening: so what is remembered changes nothing but speed.
type works struct {
	mu   sync.Mutex
	last []opened // the latest last
}

type opened struct {
	spec canon.Digest
	sum  canon.Digest // of the opening
	work Case
}

// find returns a work that is remembered.
func (w *works) find(spec, sum canon.Digest) (Case, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.last, func(o opened) bool { return o.spec == spec && o.sum == sum })
	if i < 0 {
		return nil, false
	}
	o := w.last[i]
	w.last = append(slices.Delete(w.last, i, i+1), o)
	return o.work, true
}

// add remembers a work, and forgets the one that was asked for longest ago.
func (w *works) add(o opened) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.last) == remembers {
		w.last = slices.Delete(w.last, 0, 1)
	}
	w.last = append(w.last, o)
}

// work opens the work with a digest, for gas.
func (k *Keeper) work(ctx context.Context, spec canon.Digest, opening []byte) (Case, error) {
	sdk.UnwrapSDKContext(ctx).GasMeter().ConsumeGas(gasOpen+gasJudge+uint64(len(opening)), "referee")
	sum := canon.Sum("starling/opening/1", opening)
	if work, ok := k.works.find(spec, sum); ok {
		return work, nil
	}
	work, err := k.referee(spec, opening)
	if err == nil {
		k.works.add(opened{spec, sum, work})
	}
	return work, err
}

// lazyCase is a work that is opened when it is asked, which a move must be legal for.
type lazyCase struct {
	open    func() (Case, error)
	work    Case
	err     error // of opening it
	refused error // why a payload answers nothing
}

var _ dispute.Referee = (*lazyCase)(nil)

func (l *lazyCase) ready() bool {
	if l.work == nil && l.err == nil {
		if l.work, l.err = l.open(); l.err != nil {
			l.err = fmt.Errorf("training: work that was admitted: %w", l.err)
		}
	}
	return l.err == nil
}

// Parts implements dispute.Referee.
func (l *lazyCase) Parts(c dispute.Claim) uint64 {
	if !l.ready() {
		return 0
	}
	return l.work.Parts(c)
}

// Judge implements dispute.Referee.
func (l *lazyCase) Judge(c dispute.Claim, payload []byte) (dispute.Ruling, error) {
	if !l.ready() {
		return dispute.Ruling{}, l.err
	}
	r, err := l.work.Judge(c, payload)
	l.refused = err
	return r, err
}
