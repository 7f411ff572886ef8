package pin

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/internal/pushtest"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/checkpoint"
	"github.com/starling-network/starling/node/push/parcel"
)

// folder is a folder of blobs with a checkpoint.
func folder(t *testing.T) (dir, cid string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "blobs")
	store, err := blob.OpenDisk(dir)
	if err != nil {
		t.Fatal(err)
	}
	weights := map[string]*tensor.Tensor{"w": tensor.FromF32([]float32{1, 2, 3, 4}, 4)}
	c, err := checkpoint.Save(t.Context(), store, checkpoint.Manifest{Job: "job"}, []string{"w"}, weights)
	if err != nil {
		t.Fatal(err)
	}
	return dir, c.String()
}

// A pinning service gets a checkpoint from this process, and is not asked for it a second time.
func TestPin(t *testing.T) {
	service := pushtest.NewPinService(t)
	dir, cid := folder(t)
	for range 2 {
		c, err := FromEnvironment()
		if err != nil {
			t.Fatal(err)
		}
		c.wait = func(time.Duration) <-chan time.Time { return time.After(time.Millisecond) }
		if err := c.Pin(t.Context(), dir, cid, "small", nil, func(int64) {}); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	if name, ok := service.Pinned(cid); !ok || name != "small" || service.Requests() != 1 {
		t.Errorf("%q, %v, after %d requests", name, ok, service.Requests())
	}
}

func TestRefusals(t *testing.T) {
	dir, cid := folder(t)
	for name, x := range map[string]struct {
		cid, code string
		given     func(s *pushtest.PinService)
	}{
		"no address":    {cid, parcel.BadTarget, func(*pushtest.PinService) { t.Setenv("IPFS_PINNING_ENDPOINT", "host") }},
		"no token":      {cid, parcel.Credentials, func(*pushtest.PinService) { t.Setenv("IPFS_PINNING_TOKEN", "") }},
		"another token": {cid, parcel.Credentials, func(*pushtest.PinService) { t.Setenv("IPFS_PINNING_TOKEN", "x") }},
		"no more room":  {cid, parcel.Refused, func(s *pushtest.PinService) { s.Full = true }},
		"no service": {cid, parcel.NotFound, func(s *pushtest.PinService) {
			t.Setenv("IPFS_PINNING_ENDPOINT", s.URL+"/x")
		}},
		"no answer": {cid, parcel.Unreachable, func(*pushtest.PinService) {
			t.Setenv("IPFS_PINNING_ENDPOINT", "http://127.0.0.1:1")
		}},
		"no such blocks": {cid[:len(cid)-4] + "aaaa", parcel.Disk, func(*pushtest.PinService) {}},
	} {
		s := pushtest.NewPinService(t)
		x.given(s)
		c, err := FromEnvironment()
		if err == nil {
			err = c.Pin(t.Context(), dir, x.cid, name, nil, func(int64) {})
			c.Close()
		}
		if e := (*parcel.Error)(nil); !errors.As(err, &e) || e.Code != x.code || e.Fix == "" {
			t.Errorf("%s: %v, want %s", name, err, x.code)
		}
	}
}
