package work

import (
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/terms"
)

// maxSignature is the most bytes of a signature with its public key.
const maxSignature = 2 * terms.MaxKey

// LinksRoot binds what a stage has exchanged on all its links.
func LinksRoot(links []Exchanged) canon.Digest {
	heads := make([]canon.Digest, len(links))
	for i, l := range links {
		heads[i] = l.Chain
	}
	return canon.NewTree(heads).Root()
}

// checkLinks checks the shape of the links of a commitment to a unit that is a stage. One that diverged has exchanged
// its values like any other: without their heads a stage could say that it was sent what is not finite, and no one
// could show that it was not.
func checkLinks(t terms.Terms, c Commitment, unit uint32) error {
	frames := t.Pipeline.FramesOf(unit % t.Pipeline.Stages())
	switch want := len(frames); {
	case len(c.Links) != want || want == 0:
		return fmt.Errorf("%w: %d links of a stage that has %d", refusal.ErrBadCommitment, len(c.Links), want)
	case c.HandedState.Root != LinksRoot(c.Links) || !terms.ValidCID(c.HandedState.CID):
		return fmt.Errorf("%w: no root over the heads of the links, or a CID of %d bytes, wanted 1 to %d",
			refusal.ErrBadCommitment, len(c.HandedState.CID), terms.MaxCID)
	}
	for i, l := range c.Links {
		if l.Frames != frames[i] || l.Chain.IsZero() || len(l.Signature) > maxSignature {
			return fmt.Errorf("%w: link %d has %d frames, and a signature of %d bytes", refusal.ErrBadCommitment, i, l.Frames,
				len(l.Signature))
		}
	}
	return nil
}

// Replica lists the units of the replica that a unit is a stage of, in order of stages: that unit alone, where units
// are no stages.
func (l RoundState) Replica(t terms.Terms, unit uint32) Units {
	n := t.Pipeline.Stages()
	first := unit - unit%n
	if uint64(first)+uint64(n) > uint64(len(l.Units)) {
		return nil
	}
	return l.Units[first : first+n : first+n]
}

// Agrees reports, as an error, a link about which a commitment to a unit and that of another stage of its replica,
// which stands, say different things. Each has shown that the other side has signed what it says: so one has signed
// both. A commitment that stands is as good as a signature: a stage that is committed cannot keep its word from the
// other.
func (l RoundState) Agrees(t terms.Terms, unit uint32, c Commitment) error {
	n := t.Pipeline.Stages()
	stage := unit % n
	for i, link := range t.Pipeline.LinksOf(stage) {
		if len(c.Links) == 0 {
			return nil
		}
		other := link.From + link.To - stage
		o := l.Units[unit-stage+other]
		if o.Status == Assigned || len(o.Commit.Links) == 0 {
			if len(c.Links[i].Signature) == 0 {
				return fmt.Errorf("%w: no signature of stage %d, which has not committed", refusal.ErrBadCommitment, other)
			}
			continue
		}
		for k, theirs := range t.Pipeline.LinksOf(other) {
			x, y := o.Commit.Links[k], c.Links[i]
			if theirs == link && (x.Chain != y.Chain || x.Frames != y.Frames) {
				return fmt.Errorf("%w: stage %d has committed to other values on the link from stage %d to stage %d",
					refusal.ErrBadCommitment, other, link.From, link.To)
			}
		}
	}
	return nil
}
