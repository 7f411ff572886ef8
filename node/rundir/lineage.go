package rundir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
)

// Line is one line of lineage.jsonl: a checkpoint that a quorum attested, with the signatures over
// it. There is nothing in a line that a signature does not cover.
type Line struct {
	Job        string       `json:"job"`
	Round      uint32       `json:"round"` // rounds that the checkpoint contains, from 1
	StateRoot  canon.Digest `json:"state_root"`
	Checkpoint string       `json:"checkpoint"` // CID of its folder (network/checkpoint)
	// CID of every update that the checkpoint is made of, in order of round and unit
	Updates []string `json:"updates"`
	Signers []Signer `json:"signers"`
}

// Signer is one member's signature over the attestation of a line.
type Signer struct {
	ID        string `json:"id"`
	PublicKey []byte `json:"public_key"` // secp256k1, compressed
	Signature []byte `json:"signature"`  // R || S
}

func NewLine(e progress.Entry) Line {
	a := e.Attestation
	l := Line{Job: a.Job, Round: a.Checkpoint.Round, StateRoot: a.Checkpoint.Root, Checkpoint: a.Checkpoint.CID,
		Updates: a.Updates}
	for _, v := range e.Votes {
		l.Signers = append(l.Signers, Signer{ID: v.Member, PublicKey: v.PublicKey, Signature: v.Signature})
	}
	return l
}

func (l Line) attestation() progress.Attestation {
	return progress.Attestation{Job: l.Job, Checkpoint: l.AsCheckpoint(), Updates: l.Updates}
}

func (l Line) AsCheckpoint() terms.Checkpoint {
	return terms.Checkpoint{Round: l.Round, Root: l.StateRoot, CID: l.Checkpoint}
}

// Encode returns the line with its newline. It is the only spelling that parseLineage accepts.
func (l Line) Encode() []byte {
	b, err := json.Marshal(l)
	if err != nil {
		panic(err) // strings and byte slices always marshal
	}
	return append(b, '\n')
}

// errLineage wraps every reason why a lineage is refused.
var errLineage = errors.New("lineage")

// ParseLineage reads the complete lines of a lineage and checks all that needs no computation: the spelling, the
// order, and every signature. A last line without its newline was cut off by a crash and is left out.
func ParseLineage(path, job string) ([]Line, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var lines []Line
	for len(text) > 0 {
		raw, rest, complete := bytes.Cut(text, []byte("\n"))
		if !complete {
			break
		}
		text = rest
		var l Line
		if err := json.Unmarshal(raw, &l); err != nil {
			return lines, fmt.Errorf("%w: line %d is not one: %w", errLineage, len(lines)+1, err)
		}
		if err := l.check(job, uint32(len(lines)+1), raw); err != nil {
			return lines, err
		}
		lines = append(lines, l)
	}
	return lines, nil
}

// Check checks a line that was read from the chain: that it is about a round of a job, and every signature.
func (l Line) Check(job string, round uint32) error {
	return l.check(job, round, bytes.TrimSuffix(l.Encode(), []byte("\n")))
}

func (l Line) check(job string, round uint32, raw []byte) error {
	switch {
	case !bytes.Equal(bytes.TrimSuffix(l.Encode(), []byte("\n")), raw):
		return fmt.Errorf("%w: line %d is not in its canonical form", errLineage, round)
	case l.Round != round:
		return fmt.Errorf("%w: line %d is about round %d", errLineage, round, l.Round)
	case l.Job != job:
		return fmt.Errorf("%w: round %d belongs to %s, not to %s: the job file, the data or the program is not the one of "+
			"this run", errLineage, round, l.Job, job)
	case len(l.Signers) == 0:
		return fmt.Errorf("%w: no member signed round %d", errLineage, round)
	}
	digest := l.attestation().Digest()
	for i, s := range l.Signers {
		if i > 0 && s.ID <= l.Signers[i-1].ID {
			return fmt.Errorf("%w: the signers of round %d are not in order", errLineage, round)
		}
		if err := wallet.Verify(s.ID, s.PublicKey, digest, s.Signature); err != nil {
			return fmt.Errorf("%w: round %d: signature of %s: %w", errLineage, round, s.ID, err)
		}
	}
	return nil
}
