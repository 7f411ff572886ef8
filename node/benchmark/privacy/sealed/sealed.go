// Package sealed measures jobs whose data is encrypted
// (docs/adr/0204-keys-of-shards-are-released-by-their-consumer.md): the processor time that encryption, questions about
// keys and decryption take of a round, and whether the data is in the bytes that others may see. Consumer and member
// are hosts of one process, over real connections.
package sealed

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/network/peer/address"
	"github.com/starling-network/starling/network/peer/message"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/privacy/traffic"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/release"
	"github.com/starling-network/starling/node/release/envelope"
	"github.com/starling-network/starling/node/release/keyring"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/readers"
	"github.com/starling-network/starling/protocol/run/work"
)

// Cost is what encrypted shards cost, in seconds of processor time.
type Cost struct {
	Shards   int     `json:"shards"`   // number of shards of the data
	Read     int     `json:"read"`     // shards that each unit of a round reads, added up over the units
	Training float64 `json:"training"` // of the units of a round
	Sealing  float64 `json:"sealing"`  // of all shards, once in a run
	Opening  float64 `json:"opening"`  // of the shards of the units of a round, with the release of their keys
	Part     float64 `json:"part"`     // of the training of a round: opening, and sealing divided by the rounds
	Bytes    int     `json:"bytes"`    // of encrypted shards, questions and answers
	Windows  int     `json:"windows"`  // number of windows of traffic.Window bytes in a part of the data
	Found    int     `json:"found"`    // number of these windows that are in the bytes
}

const file = `apiVersion: starling/v1
kind: TrainingJob
name: sealed
model:
  architecture: llama
  config: {hidden_size: 128, intermediate_size: 384, num_hidden_layers: 2, num_attention_heads: 4,
    max_position_embeddings: 64}
  tokenizer: byte-level
datasets: [{path: data.txt, format: text}]
encrypt_data: true
val_set_size: 0.02
sequence_len: 64
training: {max_steps: 80, global_batch_size: 8, learning_rate: 1.0e-3}
strategy: {sync_steps: 20, workers: 2}
`

const (
	dataBytes = 60 << 14 // 60 shards
	member    = "member"
	searched  = 8  // shards whose windows are searched
	repeated  = 20 // openings of a round that are measured together
)

// Measure measures a job in a folder.
func Measure(ctx context.Context, dir string) (c Cost, err error) {
	b, err := prepared(dir)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	secret, err := envelope.OpenSecret(filepath.Join(dir, "data.key"))
	if err != nil {
		return c, err
	}
	var data, sealed [][]byte
	c.Sealing, err = seconds(func() error {
		data = b.Corpus.Shards(int(b.Manifest.ShardTokens))
		for i, s := range data {
			x, err := secret.Seal(b.Manifest, i, s)
			if err != nil {
				return err
			}
			sealed = append(sealed, x)
		}
		return nil
	})
	if err != nil {
		return c, err
	}
	if c.Training, err = train(b); err != nil {
		return c, err
	}
	c.Shards = len(sealed)
	wire, err := c.open(ctx, dir, b, secret, sealed)
	if err != nil {
		return c, err
	}
	c.Part = benchmark.Rounded((c.Opening+c.Sealing/float64(b.Spec.Rounds))/c.Training, 4)
	wire = append(wire, bytes.Join(sealed, nil)...)
	c.Bytes = len(wire)
	c.Windows, c.Found = traffic.Search(wire, bytes.Join(data[:searched], nil))
	return c, nil
}

// seconds is the processor time that a function takes.
func seconds(do func() error) (float64, error) {
	before, _ := benchmark.Usage()
	err := do()
	after, _ := benchmark.Usage()
	return (after - before).Seconds(), err
}

// prepared compiles the job in a folder, on data that it writes there.
func prepared(dir string) (*prepare.CompiledJob, error) {
	random, text := rand.New(rand.NewPCG(1, 2)), make([]byte, 0, dataBytes)
	for len(text) < dataBytes {
		text = base64.StdEncoding.AppendEncode(text, binary.BigEndian.AppendUint64(nil, random.Uint64())[:6])
	}
	path := filepath.Join(dir, "job.yaml")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "data.txt"), text[:dataBytes], 0o600),
		os.WriteFile(path, []byte(file), 0o600)); err != nil {
		return nil, err
	}
	j, err := job.Load(path)
	if err != nil {
		return nil, err
	}
	return prepare.New(j)
}

// train computes the units of a round, and returns the processor time that they take.
func train(b *prepare.CompiledJob) (float64, error) {
	exec, err := cpu.Compile(b.Step, 1)
	if err != nil {
		return 0, err
	}
	task := prepare.TaskOf(b, exec)
	return seconds(func() error {
		for unit := range b.Spec.Units {
			if _, err := task.Run(b.Genesis, unit, nil, nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// accounts has one account: that of the member.
type accounts registry.Participant

// Participant implements release.Accounts.
func (a accounts) Participant(context.Context, string) (registry.Participant, error) {
	return registry.Participant(a), nil
}

// open reads the shards of all units of a round, several times, and returns the questions and answers of one.
func (c *Cost) open(ctx context.Context, dir string, b *prepare.CompiledJob, secret envelope.Secret,
	sealed [][]byte) (wire []byte, err error) {
	consumer, err := host()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, consumer.Close()) }()
	reader, err := host()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	var s run.State
	s.Phase, s.Members = progress.Train, []crew.Member{{ID: member, Role: crew.Worker, Active: true}}
	for unit := range b.Spec.Units {
		s.Units = append(s.Units, &work.Unit{Index: unit, Status: work.Assigned, Worker: member})
	}
	closes := release.NewServer(consumer).Open(&release.Job{ID: b.JobID(), Secret: secret, Manifest: b.Manifest,
		Spec: b.Spec, Run: func(context.Context) (run.State, error) { return s, nil },
		Accounts: accounts{PeerID: reader.ID().String(), Stake: 1}, Record: func(release.Release) error { return nil }})
	defer closes()
	to := address.Others(reader.ID(), consumer.Addrs())[0]
	ask := func(ctx context.Context, question []byte) ([]byte, error) {
		answer, err := reader.Ask(ctx, to, message.Keys, question)
		wire = append(append(wire, question...), answer...)
		return answer, err
	}
	fetch := func(_ context.Context, i int) ([]byte, error) { return sealed[i], nil }
	took, err := seconds(func() error {
		for range repeated {
			wire, c.Read = nil, 0
			for unit := range b.Spec.Units {
				if err := c.read(ctx, dir, b, unit, ask, fetch); err != nil {
					return err
				}
			}
		}
		return nil
	})
	c.Opening = took / repeated
	return wire, err
}

// read reads the shards of a unit as a member does that has no keys yet.
func (c *Cost) read(ctx context.Context, dir string, b *prepare.CompiledJob, unit uint32, ask keyring.Ask,
	fetch func(context.Context, int) ([]byte, error)) error {
	ring, err := keyring.Open(dir, b.JobID(), member, len(b.Manifest.Shards), ask)
	if err != nil {
		return err
	}
	list, err := release.Shards(b.Manifest, b.Spec, readers.Reading{UnitID: work.UnitID{Unit: unit}})
	if err != nil {
		return err
	}
	clear := ring.Decrypt(fetch)
	for _, i := range list {
		if _, err := clear(ctx, i); err != nil {
			return err
		}
		c.Read++
	}
	return keyring.Forget(dir, b.JobID())
}

// host is one on the loopback.
func host() (*peer.Host, error) {
	key, err := peer.GenerateKey()
	if err != nil {
		return nil, err
	}
	return peer.New(peer.Config{Key: key, Store: blob.NewMemory()})
}
