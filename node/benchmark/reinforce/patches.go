package reinforce

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/rollout"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/patch"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/network/weights"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/reinforce/sums"
)

// Steps of learning from rewards at a rate that large models have, each of which makes a version of the weights.
const (
	patchSteps  = 8
	patchRate   = 1e-6
	patchStream = 6
	receivers   = 8
)

// Patch is what has changed from a version of the weights to the next, in one precision.
type Patch struct {
	Precision string  `json:"precision"`   // bf16 or fp32
	Whole     int64   `json:"whole_bytes"` // of the weights
	Bytes     int64   `json:"patch_bytes"` // of the largest patch
	Smaller   float64 `json:"smaller"`     // the whole, divided by the patch
}

// Spread is how a patch reaches several hosts from one.
type Spread struct {
	Receivers int     `json:"receivers"`
	Patch     int64   `json:"patch_bytes"`
	Sent      uint64  `json:"origin_bytes"` // framing included
	Times     float64 `json:"times"`        // bytes of the origin, divided by those of the patch
	Seconds   float64 `json:"seconds"`
}

// patches measures the patches between versions of a model that was shown right answers and learns from rewards, and
// sends one to several hosts.
func (r *Report) patches(ctx context.Context, l *learner) error {
	task, err := model.Reinforce(l.config, model.Batch{Sequences: prompts, Length: sums.Length, Silent: sums.Silent},
		model.Rollout{Group: group, Tokens: sums.Digits, Temperature: 1, Reward: rollout.Reward{Exact: 1, Prefix: 1}})
	if err != nil {
		return err
	}
	t, err := l.trainer(task, patchRate)
	if err != nil {
		return err
	}
	from := &sums.Stream{Seed: l.run.Seed, Number: patchStream}
	versions := []patch.Version{l.version(0)}
	for i := range uint32(patchSteps) {
		if err := l.steps(ctx, t, from, 1); err != nil {
			return err
		}
		versions = append(versions, l.version(i+1))
	}
	for _, p := range []Patch{{Precision: "bf16", Whole: 2 * int64(r.Parameters)},
		{Precision: "fp32", Whole: 4 * int64(r.Parameters)}} {
		for i := range versions[1:] {
			n, err := patchBytes(versions[i], versions[i+1], p.Precision == "bf16")
			if err != nil {
				return err
			}
			p.Bytes = max(p.Bytes, n)
		}
		p.Smaller = benchmark.Rounded(float64(p.Whole)/float64(p.Bytes), 1)
		r.Patches = append(r.Patches, p)
		l.options.Progress(fmt.Sprintf("a patch of %s weights after a step at a rate of %g: %d bytes of %d, %.1f times "+
			"smaller", p.Precision, patchRate, p.Bytes, p.Whole, p.Smaller))
	}
	if r.Spread, err = spread(ctx, versions[0], versions[1]); err != nil {
		return err
	}
	l.options.Progress(fmt.Sprintf("a patch of fp32 weights to %d hosts: the origin sent %.2f patches", receivers,
		r.Spread.Times))
	r.Bars = append(r.Bars,
		benchmark.AtLeast("bf16 weights, divided by a patch at a rate of 1e-6", r.Patches[0].Smaller, 50),
		benchmark.AtMost("patches that the origin sends for 8 receivers", r.Spread.Times, 2))
	return nil
}

// version is a copy of the weights.
func (l *learner) version(round uint32) patch.Version {
	v := patch.Version{Name: patch.Name{Round: round}}
	for _, name := range slices.Sorted(maps.Keys(l.weights)) {
		v.Tensors = append(v.Tensors, l.weights[name].Clone())
	}
	v.Name.Root = train.CheckpointRoot(round, train.Roots(v.Tensors))
	return v
}

// patchBytes are those of a patch, from which the later version is made again.
func patchBytes(a, b patch.Version, narrow bool) (int64, error) {
	if narrow {
		a.Tensors, b.Tensors = patch.Narrow(a.Tensors), patch.Narrow(b.Tensors)
	}
	var pieces [][]byte
	h, err := patch.Make(a, b, func(p []byte) error { pieces = append(pieces, p); return nil })
	if err != nil {
		return 0, err
	}
	made, err := h.Apply(a, func(i int) ([]byte, error) { return pieces[i], nil }, nil)
	if err != nil {
		return 0, err
	}
	if !slices.Equal(train.Roots(made), train.Roots(b.Tensors)) {
		return 0, errors.New("benchmark: a patch has lost bits")
	}
	return int64(len(h.Encode())) + h.Bytes(), nil
}

// holder is a host that holds versions of weights.
type holder struct {
	*weights.Exchange
	host *peer.Host
	held []patch.Version
}

// Versions implements weights.Source.
func (h *holder) Versions() []patch.Version { return h.held }

func newHolder(held ...patch.Version) (*holder, error) {
	key, err := peer.GenerateKey()
	if err != nil {
		return nil, err
	}
	store := blob.NewMemory()
	host, err := peer.New(peer.Config{Key: key, Store: store, Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
	if err != nil {
		return nil, err
	}
	h := &holder{weights.New(host, store, host.FetchWithin), host, held}
	h.Serve(h)
	return h, nil
}

func (h *holder) close() {
	h.Close()
	_ = h.host.Close()
}

// spread sends a patch from one host to several over loopback, which ask at the same time.
func spread(ctx context.Context, a, b patch.Version) (Spread, error) {
	origin, err := newHolder(a, b)
	if err != nil {
		return Spread{}, err
	}
	defer origin.close()
	addrs, hosts := origin.host.Addrs(), make([]*holder, receivers)
	for i := range hosts {
		if hosts[i], err = newHolder(); err != nil {
			return Spread{}, err
		}
		defer hosts[i].close()
		addrs = append(addrs, hosts[i].host.Addrs()...)
	}
	errs, begun := make([]error, receivers), time.Now()
	brought := make([]int64, receivers)
	apply := func(h *patch.Head, get func(i int) ([]byte, error)) error {
		made, err := h.Apply(a, get, nil)
		if err == nil && train.CheckpointRoot(b.Name.Round, train.Roots(made)) != b.Name.Root {
			err = errors.New("benchmark: a patch leads to other weights")
		}
		return err
	}
	var working sync.WaitGroup
	for i, h := range hosts {
		working.Go(func() {
			brought[i], errs[i] = h.Bring(ctx, a.Name, b.Name, 1<<40, addrs, apply)
		})
	}
	working.Wait()
	if err := errors.Join(errs...); err != nil {
		return Spread{}, err
	}
	sent, _ := origin.host.Traffic()
	bytes := brought[0]
	return Spread{Receivers: receivers, Patch: bytes, Sent: sent,
		Times:   benchmark.Rounded(float64(sent)/float64(bytes), 3),
		Seconds: benchmark.Rounded(time.Since(begun).Seconds(), 2)}, nil
}
