// Package quotes stores the attestations of the machines of participants, the pinned roots and how late the collateral
// was that the network has seen: the rules of protocol/attestation on the chain.
package quotes

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/protocol/attestation"
	"github.com/starling-network/starling/protocol/attestation/check"
	"github.com/starling-network/starling/protocol/registry"
)

// ErrNoFlag is returned for the message by which governance once said that a machine is attested.
var ErrNoFlag = errors.New("registry: governance does not attest machines")

// Gas of a quote, in addition to that of its bytes in the transaction: verifying it takes some milliseconds.
const (
	gasQuote = 5_000_000
	gasByte  = 10
)

// Participants are the participants of the network, and the beacons of its blocks.
type Participants interface {
	Find(ctx context.Context, id string) (p registry.Participant, known bool, err error)
	Replace(ctx context.Context, old, p registry.Participant) error
	At(ctx context.Context, height int64) (canon.Digest, error)
}

// roots are those that governance has pinned.
type roots struct {
	List []attestation.Root `cbor:"1,keyasint"`
}

// List is the attestations.
type List struct {
	around   Participants
	roots    collections.Item[roots]
	records  collections.Map[string, attestation.Record]
	expiring collections.KeySet[collections.Pair[int64, string]] // time after which an attestation of a participant ends
	seen     collections.Map[string, int64]                      // latest collateral of each source
}

// New returns a list inside the store of the module.
func New(b *collections.SchemaBuilder, around Participants) List {
	id := collections.StringKey
	return List{
		around: around,
		roots:  collections.NewItem(b, collections.NewPrefix(34), "roots", adapter.Record[roots]()),
		records: collections.NewMap(b, collections.NewPrefix(35), "attestations", id,
			adapter.Record[attestation.Record]()),
		expiring: collections.NewKeySet(b, collections.NewPrefix(36), "expiring",
			collections.PairKeyCodec(collections.Int64Key, id)),
		seen: collections.NewMap(b, collections.NewPrefix(37), "collateral", id, collections.Int64Value),
	}
}

// Roots are the pinned roots; those of a new network until governance pins others.
func (l List) Roots(ctx context.Context) ([]attestation.Root, error) {
	r, err := l.roots.Get(ctx)
	if errors.Is(err, collections.ErrNotFound) {
		return attestation.Roots(), nil
	}
	return r.List, err
}

func (l List) latest(ctx context.Context) func(source string) (int64, error) {
	return func(source string) (int64, error) {
		n, err := l.seen.Get(ctx, source)
		if errors.Is(err, collections.ErrNotFound) {
			return 0, nil
		}
		return n, err
	}
}

// submit attests the machine of a participant.
func (l List) submit(ctx context.Context, m *registrypb.MsgSubmitQuote) (int64, error) {
	e := attestation.Evidence{Quote: m.Quote, Certificates: m.Certificates, Revocations: m.Revocations,
		TCBInfo: m.TCBInfo, QEIdentity: m.QEIdentity}
	block := sdk.UnwrapSDKContext(ctx)
	block.GasMeter().ConsumeGas(gasQuote+gasByte*uint64(e.Size()), "a quote of a machine")
	p, known, err := l.around.Find(ctx, m.Sender)
	switch {
	case err != nil:
		return 0, err
	case !known || len(p.Roles) == 0:
		return 0, fmt.Errorf("%w: %s is neither a worker nor a verifier", attestation.ErrRefused, m.Sender)
	}
	beacon, err := l.around.At(ctx, m.Block)
	if err != nil {
		return 0, err
	}
	if !attestation.Fresh(m.Block, block.BlockHeight()) || beacon.IsZero() {
		return 0, fmt.Errorf("%w: %w", attestation.ErrRefused, check.Fail(check.Nonce,
			"block %d at height %d, wanted one of the last %d with a beacon", m.Block, block.BlockHeight(),
			attestation.MaxDelay))
	}
	pinned, err := l.Roots(ctx)
	if err != nil {
		return 0, err
	}
	want := attestation.ReportData(attestation.Nonce(m.Block, beacon), p.ID, p.PeerID)
	now := block.BlockTime().Unix()
	r, err := attestation.Verify(&e, pinned, want, l.latest(ctx), now)
	if err != nil {
		return 0, err
	}
	r.Passed.Add(check.Nonce)
	for _, s := range r.Seen {
		if err := l.seen.Set(ctx, s.Source, s.Number); err != nil {
			return 0, err
		}
	}
	return r.Until, l.put(ctx, p, attestation.Record{
		ID: p.ID, Peer: p.PeerID, Measurement: r.Measurement.String(), Platform: r.Platform, LevelDate: r.LevelDate,
		At: now, Height: block.BlockHeight(), Until: r.Until, Quote: sha256.Sum256(m.Quote), Passed: r.Passed,
	}, r.Measurement.Digest())
}

// put stores an attestation in place of an earlier one.
func (l List) put(ctx context.Context, p registry.Participant, r attestation.Record, measurement canon.Digest) error {
	before, err := l.records.Get(ctx, p.ID)
	switch {
	case err == nil:
		err = l.expiring.Remove(ctx, collections.Join(before.Until, p.ID))
	case errors.Is(err, collections.ErrNotFound):
		err = nil
	}
	attested := p
	attested.Quote = registry.Quote{Measurement: measurement, Until: r.Until}
	return errors.Join(err, l.records.Set(ctx, p.ID, r), l.expiring.Set(ctx, collections.Join(r.Until, p.ID)),
		l.around.Replace(ctx, p, attested))
}

// holds reports whether an attestation is still that of the participant: with another transport key or device it has
// none, and the attestation is stored until its time is over.
func (l List) holds(ctx context.Context, r attestation.Record) (bool, error) {
	p, known, err := l.around.Find(ctx, r.ID)
	return known && p.Attested() && p.Quote.Until == r.Until && p.PeerID == r.Peer, err
}

// maxExpired is how many attestations a block ends; the next blocks end the others.
const maxExpired = 100

// Expire ends the attestations whose time is over.
func (l List) Expire(ctx context.Context) error {
	now := sdk.UnwrapSDKContext(ctx).BlockTime().Unix()
	var over []collections.Pair[int64, string]
	err := l.expiring.Walk(ctx, nil, func(at collections.Pair[int64, string]) (bool, error) {
		if at.K1() >= now {
			return true, nil
		}
		over = append(over, at)
		return len(over) == maxExpired, nil
	})
	if err != nil {
		return err
	}
	for _, at := range over {
		if err := l.end(ctx, at); err != nil {
			return err
		}
	}
	return nil
}

func (l List) end(ctx context.Context, at collections.Pair[int64, string]) error {
	if err := errors.Join(l.expiring.Remove(ctx, at), l.records.Remove(ctx, at.K2())); err != nil {
		return err
	}
	p, known, err := l.around.Find(ctx, at.K2())
	if err != nil || !known || !p.Attested() {
		return err
	}
	old := p
	p.Quote = registry.Quote{}
	return l.around.Replace(ctx, old, p)
}
