// Package sums measures what it costs owners of data and their coordinator to hide updates from the coordinator, by
// each way that a job on private data can name (docs/adr/0220-ciphertexts-are-opened-by-the-sum-of-their-keys.md),
// and compares it with the same sum in the clear. All parties are in one process, and messages are passed as bytes. It
// trains nothing.
package sums

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/client/job/owners"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/federated"
	"github.com/starling-network/starling/exchange/fixedpoint"
	"github.com/starling-network/starling/exchange/prg"
	"github.com/starling-network/starling/exchange/secagg"
	"github.com/starling-network/starling/node/benchmark"
)

// Size is what is measured.
type Size struct {
	Owners  int // of a sum
	Gone    int // of them, that leave before they send a vector; the threshold allows Owners - secagg.Threshold(Owners)
	Weights int // of an update
}

// Row is one way, with its price for one sum and what it gives.
type Row struct {
	Way      string  `json:"way"`     // clear, or a value of federated.updates
	Owners   int     `json:"owners"`  // that begin
	Summed   int     `json:"summed"`  // whose updates are in the sum
	Weights  int     `json:"weights"` // of an update
	Sent     int     `json:"sent"`    // bytes of an owner, all messages
	Received int     `json:"received"`
	Owner    float64 `json:"owner_seconds"`       // processor time of an owner that stays
	Server   float64 `json:"coordinator_seconds"` // and of the coordinator
	Exact    bool    `json:"exact"`               // the sum is the plain one, to the bit
	Protects string  `json:"protects"`            // what, and from whom
	Leaves   string  `json:"leaves"`              // open
}

// Clear is the way that is no value of federated.updates.
const Clear = "clear"

// Measure adds the same updates in each way.
func Measure(ctx context.Context, s Size, progress func(string)) (rows []Row, err error) {
	values, plain, err := updates(s)
	if err != nil {
		return nil, err
	}
	for _, r := range []Row{
		{Way: Clear, Protects: "nothing",
			Leaves: "each update, to the coordinator"},
		{Way: owners.Masked, Protects: "each update from the coordinator with up to a third of the owners",
			Leaves: "the sum and the model"},
		{Way: owners.Encrypted, Protects: "each update from the coordinator with up to a third of the owners",
			Leaves: "the sum and the model; rests on learning with errors over rings, too"},
	} {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		progress(fmt.Sprintf("the price of updates that are %s", r.Way))
		r.Owners, r.Weights = s.Owners, s.Weights
		p := play{Row: &r, gone: s.Gone}
		r.Summed = s.Owners - p.gone
		add := p.hidden
		if r.Way == Clear {
			add = p.open
		}
		sum, err := add(values)
		if err != nil {
			return nil, err
		}
		r.Exact = slices.Equal(sum, plain)
		r.Owner = benchmark.Rounded(p.owners.Seconds()/float64(r.Summed), 4)
		r.Server = benchmark.Rounded(p.server.Seconds(), 4)
		rows = append(rows, r)
	}
	return rows, nil
}

// updates are drawn, on the grid, with the sum of those that stay.
func updates(s Size) (all [][]uint32, plain []uint32, err error) {
	plain = make([]uint32, s.Weights+1)
	for i := range s.Owners {
		u := tensor.New(tensor.Make(tensor.Float32, s.Weights))
		philox.NormalTo(u.F32(), 1, uint64(i))
		v, err := fixedpoint.Encode([]*tensor.Tensor{u}, 1, 1)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, v)
		if i >= s.Gone {
			for k := range v {
				plain[k] += v[k]
			}
		}
	}
	return all, plain, nil
}

// play is one sum, whose first owners leave before they send a vector.
type play struct {
	*Row
	gone           int
	owners, server time.Duration // processor time of owners that stay, and of the coordinator
}

// Timed adds the processor time of a function to a total.
func Timed(total *time.Duration, do func() error) error {
	before, _ := benchmark.Usage()
	err := do()
	after, _ := benchmark.Usage()
	*total += after - before
	return err
}

// open adds updates in the clear.
func (p *play) open(values [][]uint32) ([]uint32, error) {
	sum := make([]uint32, p.Weights+1)
	for _, v := range values[p.gone:] {
		var message []byte
		_ = Timed(&p.owners, func() error {
			message = make([]byte, 0, 4*len(v))
			for _, x := range v {
				message = binary.LittleEndian.AppendUint32(message, x)
			}
			return nil
		})
		p.Sent = len(message)
		_ = Timed(&p.server, func() error {
			for k := range sum {
				sum[k] += binary.LittleEndian.Uint32(message[4*k:])
			}
			return nil
		})
	}
	return sum, nil
}

// member is an owner of a round.
type member struct {
	*federated.Member
	name    ed25519.PublicKey
	message []byte
}

// hidden adds updates by a round of a job.
func (p *play) hidden(values [][]uint32) ([]uint32, error) {
	c := federated.Conditions{Cohort: secagg.MinCohort, Encrypted: p.Way == owners.Encrypted}
	var job canon.Digest
	_, _ = rand.Read(job[:]) // never fails
	a := federated.Announcement{}
	r, err := federated.NewRound(job, a, c, p.Weights)
	if err != nil {
		return nil, err
	}
	var all []*member
	for i, v := range values {
		total := &p.owners
		if i < p.gone {
			total = new(time.Duration)
		}
		if err := Timed(total, func() error {
			m, err := newMember(job, a, c, slices.Clone(v))
			all = append(all, m)
			return err
		}); err != nil {
			return nil, err
		}
	}
	for _, phase := range federated.Phases {
		if phase == federated.Vectors {
			all = all[p.gone:]
		}
		if err := p.phase(r, phase, all); err != nil {
			return nil, err
		}
	}
	return r.Sum(), nil
}

func newMember(job canon.Digest, a federated.Announcement, c federated.Conditions, v []uint32) (*member, error) {
	name, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	var seed prg.Key
	_, _ = rand.Read(seed[:]) // never fails
	m := &member{name: name}
	m.Member, m.message, err = federated.NewMember(job, a, c, key, seed, v)
	return m, err
}

// phase passes the messages of a phase, and the replies.
func (p *play) phase(r *federated.Round, phase federated.Phase, all []*member) error {
	last := all[len(all)-1] // which stays
	p.Sent += len(last.message)
	if err := Timed(&p.server, func() error {
		for _, m := range all {
			if err := r.Take(phase, m.name, m.message); err != nil {
				return err
			}
		}
		return r.Close()
	}); err != nil {
		return err
	}
	for i, m := range all {
		var reply []byte
		if err := Timed(&p.server, func() (err error) {
			reply, _, err = r.Reply(phase, m.name)
			return err
		}); err != nil {
			return err
		}
		if bytes.Equal(m.name, last.name) {
			p.Received += len(reply)
		}
		if phase == federated.Secrets {
			continue
		}
		total := &p.owners
		if len(all) == p.Owners && i < p.gone {
			total = new(time.Duration)
		}
		if err := Timed(total, func() (err error) {
			m.message, err = m.Answer(phase, reply)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// Elapsed is how many seconds a function takes: where other processes have the processors, too, their processor time
// for each of them.
func Elapsed(do func() error) (float64, error) {
	began, used := time.Now(), time.Duration(0)
	err := Timed(&used, do)
	took := time.Since(began).Seconds()
	if all := used.Seconds() / float64(kernel.Cores); all > 0 {
		took = min(took, all)
	}
	return took, err
}
