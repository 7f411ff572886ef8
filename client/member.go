package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/party"
)

// Member is a client that speaks for one member of one run: what its role sees of the chain, and what its party says.
// It implements party.Chain.
type Member struct {
	*Client
	Job       string
	Bootstrap []string // addresses of peers to ask besides the members
}

var _ party.Chain = Member{}

// Observe reads the state of the run after a block; nil before the order is matched.
func (m Member) Observe(ctx context.Context, height int64) (*role.Block, error) {
	s, err := m.Training.Run(ctx, m.Job)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b := &role.Block{Height: height, Run: s}
	if s.Disputed() {
		b.Disputes, err = m.Training.Disputes(ctx, m.Job)
	}
	return b, err
}

// Send implements party.Chain.
func (m Member) Send(ctx context.Context, a role.Action) error {
	switch a := a.(type) {
	case role.Commit:
		return m.Work.Commit(ctx, m.Job, a.Work, a.Commit)
	case role.Pass:
		return m.Work.Pass(ctx, m.Job, a.Work, a.Seal)
	case party.Unseal:
		return m.Work.Unseal(ctx, m.Job, a.Work, a.Opening)
	case role.Unmask:
		return m.Work.Unmask(ctx, m.Job, a.Work, a.Nonce, a.Segments)
	case role.Confess:
		return m.Work.Confess(ctx, m.Job, a.Work)
	case role.Report:
		return m.Work.Report(ctx, m.Job, a.Work, a.Seal, a.Outside)
	case role.ShowReport:
		return m.Work.ShowReport(ctx, m.Job, a.Work, a.Finding, a.Salt)
	case role.Suspect:
		return m.Work.Suspect(ctx, m.Job, a.Work)
	case role.Challenge:
		return m.Work.Challenge(ctx, m.Job, a.Work, a.Segment, a.Commitment)
	case party.Refutation:
		return m.Work.Refute(ctx, m.Job, a.Wrong, a.Shown)
	case party.Move:
		return m.Work.Move(ctx, m.Job, role.Disputed(a.Game), a.Made)
	case role.Attest:
		return m.Work.Attest(ctx, progress.Attestation{Job: m.Job, Checkpoint: a.Next, Updates: a.Updates})
	case role.Prove:
		return m.Work.Prove(ctx, m.Job, a.Work, a.Seal)
	case role.Leave:
		return m.Work.Leave(ctx, m.Job)
	case role.Return:
		return m.Work.Return(ctx, m.Job)
	case role.LacksData:
		return m.Work.Missing(ctx, m.Job, a.Work, 0, true)
	case role.Missing:
		return m.Work.Missing(ctx, m.Job, a.Work, a.Slice, false)
	case role.SealSlice:
		return m.Work.SealSlice(ctx, m.Job, a.Part.Round, a.Part.Closed, a.Part.Slice, a.Seal)
	case role.ShowSlice:
		return m.Work.ShowSlice(ctx, m.Job, a.Part.Round, a.Part.Closed, a.Part.Slice, a.CID)
	}
	return fmt.Errorf("client: no such message: %T", a)
}

// Addresses implements party.Chain.
func (m Member) Addresses(ctx context.Context, id string) ([]string, error) {
	p, err := m.Registry.Participant(ctx, id)
	return p.Addrs, err
}

// SignJoined returns a signature of the account that follows its public key, as account.VerifyJoined checks it.
func (m Member) SignJoined(message []byte) ([]byte, error) {
	signature, err := m.signer.Sign(message)
	return append(slices.Clip(m.signer.PublicKey()), signature...), err
}

// Place implements party.Chain.
func (m Member) Place(ctx context.Context, id string) (string, error) {
	p, err := m.Registry.Participant(ctx, id)
	return placeOf(p), err
}

// placeOf is where a participant is, "" if it does not say so and was not measured.
func placeOf(p registry.Participant) string { return cmp.Or(p.Hardware.Region, p.Cluster) }

// Holders implements party.Chain. Those where this member is come before the others.
func (m Member) Holders(ctx context.Context) ([]string, error) {
	participants, err := m.Registry.Participants(ctx)
	if err != nil {
		return nil, err
	}
	self := func(p registry.Participant) bool { return p.ID == m.Address() }
	here := ""
	if i := slices.IndexFunc(participants, self); i >= 0 {
		here = placeOf(participants[i])
	}
	var near, far []string
	for _, p := range participants {
		switch {
		case self(p):
		case here != "" && placeOf(p) == here:
			near = append(near, p.Addrs...)
		default:
			far = append(far, p.Addrs...)
		}
	}
	return slices.Concat(m.Bootstrap, near, far), nil
}

// Consumer returns the addresses of the account that ordered the job, and those of Bootstrap.
func (m Member) Consumer(ctx context.Context) ([]string, error) {
	o, err := m.Market.PlacedOrder(ctx, m.Job)
	if err != nil {
		return nil, err
	}
	p, err := m.Registry.Participant(ctx, o.Consumer)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	return slices.Concat(m.Bootstrap, p.Addrs), nil
}

// Lineage is the attested checkpoint of a round of the run, from 1; ErrNotFound before it is attested.
func (m Member) Lineage(ctx context.Context, round uint32) (progress.Entry, error) {
	return m.Training.Lineage(ctx, m.Job, round)
}
