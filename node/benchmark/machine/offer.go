package machine

import (
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"time"

	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/gpu"
)

// OfferReport is what a machine can offer as a worker.
type OfferReport struct {
	Matmul       float64      `json:"matmul_gflops"` // of a square of 1024
	Train        *TrainReport `json:"train"`
	DiskMBps     float64      `json:"disk_mb_per_second"` // written and synced
	SyncSeconds  float64      `json:"sync_seconds"`       // of a small write that has to last
	LoopbackMBps float64      `json:"loopback_mb_per_second"`
	UzenPerHour  uint64       `json:"uzen_per_hour"` // before the fee, if it always trains, at the price
	Price        uint64       `json:"price"`         // uzen per 10^15 operations
	GPUs         []gpu.GPU    `json:"gpus"`          // of the machine: none of the figures is of them
}

// OfferOptions configure the measurement.
type OfferOptions struct {
	Dir     string // of the disk
	Threads int
	Steps   int    // of training
	Price   uint64 // uzen per 10^15 operations
}

const (
	offerBytes  = 32 << 20 // written to the disk, and sent from one host to another
	offerRepeat = 3        // the best counts
)

// Offer measures what a worker needs: products, training steps of a small GPT, the disk, and a blob on its way from one
// host to another of this machine.
func Offer(ctx context.Context, o OfferOptions) (*OfferReport, error) {
	m, err := Matmul(ctx, Products[1:2], o.Threads)
	if err != nil {
		return nil, err
	}
	r := &OfferReport{Matmul: m.GFLOPS[Products[1].Name], Price: o.Price,
		GPUs: append([]gpu.GPU{}, gpu.List(ctx)...)}
	if r.Train, err = Train(ctx, Presets[0], o.Threads, o.Steps); err != nil {
		return nil, err
	}
	data := make([]byte, offerBytes)
	random := philox.New(1, 0)
	for i := range data {
		data[i] = byte(random.Uint64n(256))
	}
	whole, err := best(ctx, func() error { return written(o.Dir, data) })
	if err != nil {
		return nil, err
	}
	small, err := best(ctx, func() error { return written(o.Dir, data[:1]) })
	if err != nil {
		return nil, err
	}
	sent, err := best(ctx, func() error { return sent(ctx, data) })
	if err != nil {
		return nil, err
	}
	r.DiskMBps, r.LoopbackMBps = benchmark.Rounded(offerBytes/whole.Seconds()/1e6, 1),
		benchmark.Rounded(offerBytes/sent.Seconds()/1e6, 1)
	r.SyncSeconds = benchmark.Rounded(small.Seconds(), 4)
	r.UzenPerHour = uint64(math.Round(r.Train.GFLOPS * 1e9 * 3600 / 1e15 * float64(o.Price)))
	return r, nil
}

// best is the shortest of a few times.
func best(ctx context.Context, f func() error) (time.Duration, error) {
	var times []time.Duration
	for range offerRepeat {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		begin := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		times = append(times, time.Since(begin))
	}
	return slices.Min(times), nil
}

// written writes a file that lasts, and removes it.
func written(dir string, data []byte) error {
	f, err := os.CreateTemp(dir, ".starling-bench-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name()))
}

// sent lets one host of this machine fetch a blob from another. It measures the transfer with its checks, and the
// start of two hosts, which takes a few milliseconds.
func sent(ctx context.Context, data []byte) error {
	var hosts []*peer.Host
	var stores []blob.Store
	defer func() {
		for _, h := range hosts {
			_ = h.Close()
		}
	}()
	for range 2 {
		key, err := peer.GenerateKey()
		if err != nil {
			return err
		}
		store := blob.NewMemory()
		h, err := peer.New(peer.Config{Key: key, Store: store})
		if err != nil {
			return err
		}
		hosts, stores = append(hosts, h), append(stores, store)
	}
	id, err := stores[0].Put(ctx, data)
	if err != nil {
		return err
	}
	_, err = hosts[1].Fetch(ctx, id, hosts[0].Addrs())
	return err
}
