// Package runpb holds the messages about a run that several modules share, generated from chain/proto, and their
// conversion to and from protocol/run. It decides nothing.
package runpb

import (
	"errors"
	"fmt"
	"math"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// ErrDigest is returned for a digest whose length is not 32 bytes.
var ErrDigest = errors.New("run: a digest has 32 bytes")

// Digest reads the bytes of a digest.
func Digest(b []byte) (d canon.Digest, err error) {
	if len(b) != len(d) {
		return d, fmt.Errorf("%w, not %d", ErrDigest, len(b))
	}
	copy(d[:], b)
	return d, nil
}

// Rule returns the terms in the type of protocol/run.
func (t Terms) Rule() (terms.Terms, error) {
	spec, err := Digest(t.Spec)
	if err != nil {
		return terms.Terms{}, fmt.Errorf("specification: %w", err)
	}
	root, err := Digest(t.Genesis.Root)
	if err != nil {
		return terms.Terms{}, fmt.Errorf("root of the genesis checkpoint: %w", err)
	}
	measurements, err := Digests(t.Attested.Measurements)
	if err != nil {
		return terms.Terms{}, fmt.Errorf("measurements: %w", err)
	}
	return terms.Terms{
		Job: t.Job, Spec: spec, SpecCID: t.SpecCID,
		Genesis: terms.Checkpoint{Round: t.Genesis.Round, Root: root, CID: t.Genesis.CID},
		Rounds:  t.Rounds, Units: t.Units, Segments: t.Segments, UnitFlops: t.UnitFlops, AuditPPM: t.AuditPPM,
		Deadlines: terms.Deadlines{Train: t.Deadlines.Train, Audit: t.Deadlines.Audit, Attest: t.Deadlines.Attest,
			Challenge: t.Deadlines.Challenge},
		Window: t.Window, Slices: t.Slices,
		Screen:        terms.Screen(min(t.Screen, math.MaxUint8)),
		Tolerance:     terms.Tolerance{DistancePPM: t.Tolerance.DistancePPM, CosinePPM: t.Tolerance.CosinePPM},
		PartialAudits: t.Drawn, Carry: t.Carry, Overlap: t.Overlap, Sizes: t.Sizes,
		Rollout: terms.Rollout{Units: t.Rollout.Units, Staleness: t.Rollout.Staleness, Flops: t.Rollout.Flops,
			Shared: t.Rollout.Shared},
		Pipeline: t.Pipeline.rule(),
		Attested: terms.Attested{Measurements: measurements, FactorPPM: t.Attested.FactorPPM, Required: t.Attested.Required},
		Led:      t.Led,
	}, nil
}

// rule returns the stages in the type of protocol/run.
func (p Pipeline) rule() (t terms.Pipeline) {
	t.Flops, t.Frames = p.Flops, p.Frames
	for _, l := range p.Links {
		t.Links = append(t.Links, terms.Link{From: l.From, To: l.To})
	}
	return t
}

// fromPipeline is the inverse of Pipeline.rule.
func fromPipeline(t terms.Pipeline) (p Pipeline) {
	p.Flops, p.Frames = t.Flops, t.Frames
	for _, l := range t.Links {
		p.Links = append(p.Links, Link{From: l.From, To: l.To})
	}
	return p
}

// FromTerms is the inverse of Terms.Rule.
func FromTerms(t terms.Terms) Terms {
	return Terms{
		Job: t.Job, Spec: t.Spec[:], SpecCID: t.SpecCID,
		Genesis: Checkpoint{Round: t.Genesis.Round, Root: t.Genesis.Root[:], CID: t.Genesis.CID},
		Rounds:  t.Rounds, Units: t.Units, Segments: t.Segments, UnitFlops: t.UnitFlops, AuditPPM: t.AuditPPM,
		Deadlines: Deadlines{Train: t.Deadlines.Train, Audit: t.Deadlines.Audit, Attest: t.Deadlines.Attest,
			Challenge: t.Deadlines.Challenge},
		Window: t.Window, Slices: t.Slices,
		Screen:    uint32(t.Screen),
		Tolerance: Tolerance{DistancePPM: t.Tolerance.DistancePPM, CosinePPM: t.Tolerance.CosinePPM},
		Drawn:     t.PartialAudits, Carry: t.Carry, Overlap: t.Overlap, Sizes: t.Sizes,
		Rollout: Rollout{Units: t.Rollout.Units, Staleness: t.Rollout.Staleness, Flops: t.Rollout.Flops,
			Shared: t.Rollout.Shared},
		Pipeline: fromPipeline(t.Pipeline),
		Attested: Attested{Measurements: FromDigests(t.Attested.Measurements), FactorPPM: t.Attested.FactorPPM,
			Required: t.Attested.Required},
		Led: t.Led,
	}
}

// Rule returns the commitment in the type of protocol/run.
func (c Commitment) Rule() (work.Commitment, error) {
	update, err := Digest(c.Update)
	if err != nil {
		return work.Commitment{}, fmt.Errorf("update: %w", err)
	}
	hidden, err := Digest(c.Hidden)
	if err != nil {
		return work.Commitment{}, fmt.Errorf("hidden state roots: %w", err)
	}
	segments, err := Digests(c.Segments)
	if err != nil {
		return work.Commitment{}, err
	}
	carried := work.HandedState{CID: c.CarriedCID}
	if len(c.Carried) > 0 {
		if carried.Root, err = Digest(c.Carried); err != nil {
			return work.Commitment{}, fmt.Errorf("carried state: %w", err)
		}
	}
	var links []work.Exchanged
	for _, l := range c.Links {
		chain, err := Digest(l.Chain)
		if err != nil {
			return work.Commitment{}, fmt.Errorf("link: %w", err)
		}
		links = append(links, work.Exchanged{Frames: l.Frames, Chain: chain, Signature: l.Signature})
	}
	return work.Commitment{
		Segments: segments, Update: update, UpdateCID: c.UpdateCID, Bytes: c.Bytes, Loss: c.Loss, Log: c.Log,
		HiddenRoots: hidden,
		HandedState: carried, Links: links,
	}, nil
}

// Digests reads state roots.
func Digests(list [][]byte) (roots []canon.Digest, err error) {
	for i, b := range list {
		root, err := Digest(b)
		if err != nil {
			return nil, fmt.Errorf("state root %d: %w", i, err)
		}
		roots = append(roots, root)
	}
	return roots, nil
}

// FromCommitment is the inverse of Commitment.Rule.
func FromCommitment(c work.Commitment) Commitment {
	m := Commitment{
		Segments: FromDigests(c.Segments), Update: c.Update[:], UpdateCID: c.UpdateCID, Bytes: c.Bytes, Loss: c.Loss,
		Log: c.Log, Hidden: c.HiddenRoots[:],
		CarriedCID: c.HandedState.CID,
	}
	if !c.HandedState.Root.IsZero() {
		m.Carried = c.HandedState.Root[:]
	}
	for _, l := range c.Links {
		m.Links = append(m.Links, Exchanged{Frames: l.Frames, Chain: l.Chain[:], Signature: l.Signature})
	}
	return m
}

// FromDigests is the inverse of Digests.
func FromDigests(roots []canon.Digest) (list [][]byte) {
	for _, root := range roots {
		list = append(list, root[:])
	}
	return list
}
