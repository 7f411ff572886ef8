package owner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/federated"
	"github.com/starling-network/starling/exchange/scaffold"
	"github.com/starling-network/starling/node/folder"
)

// kept is the control variate of an owner for a job, before and after the last round in which the owner sent a vector.
// The announcement of the next round tells which of the two holds: it counts the applied sums with an update of the
// owner.
type kept struct {
	since   uint32           // round in which all variates were 0 the last time
	counted uint32           // applied sums since then with an update of the owner, before that round
	now     []*tensor.Tensor // variate, if the sum of that round was not applied
	next    []*tensor.Tensor // variate, if it was applied
}

// Names of the entries of the file of a variate.
const (
	folderVariates = "variates"
	metaSince      = "since"
	metaCounted    = "counted"
	now, next      = "now", "next" // prefixes of tensors
)

func (h *Home) variateFile(job string) string {
	return filepath.Join(h.dir, folderVariates, job+".safetensors")
}

// keep writes a variate into the home of the owner, and nowhere else: it discloses something about the data. nil: there
// is none.
func (h *Home) keep(job string, k *kept) error {
	if k == nil {
		return nil
	}
	var names []string
	tensors := map[string]*tensor.Tensor{}
	add := func(prefix string, list []*tensor.Tensor) {
		for i, t := range list {
			name := entry(prefix, i)
			names, tensors[name] = append(names, name), t
		}
	}
	add(now, k.now)
	add(next, k.next)
	path := h.variateFile(job)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return folder.WriteFileBy(path, func(w io.Writer) error {
		return safetensors.EncodeAs(w, names, tensors, nil, map[string]string{metaSince: fmt.Sprint(k.since),
			metaCounted: fmt.Sprint(k.counted)})
	})
}

func entry(prefix string, i int) string { return prefix + "/" + strconv.Itoa(i) }

// variate returns the variate of the owner when a round begins, with the shapes of params. It is 0 if the owner has
// none, or if all variates were set to 0 after it was written.
func (h *Home) variate(job string, a federated.Announcement, params []*tensor.Tensor) ([]*tensor.Tensor, error) {
	b, err := os.ReadFile(h.variateFile(job))
	if errors.Is(err, os.ErrNotExist) {
		return scaffold.Zeros(params), nil
	}
	if err != nil {
		return nil, err
	}
	f, err := safetensors.Open(b)
	if err != nil {
		return nil, err
	}
	since, err1 := strconv.ParseUint(f.Meta[metaSince], 10, 32)
	counted, err2 := strconv.ParseUint(f.Meta[metaCounted], 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if uint32(since) != a.Since {
		return scaffold.Zeros(params), nil
	}
	prefix := now
	if a.Counted > uint32(counted) {
		prefix = next
	}
	var own []*tensor.Tensor
	for i, p := range params {
		t, err := f.Tensor(entry(prefix, i))
		if err != nil {
			return nil, err
		}
		if !t.Shape.Equal(p.Shape) {
			return nil, fmt.Errorf("%s: a tensor is %s, wanted %s", h.variateFile(job), t.Shape, p.Shape)
		}
		own = append(own, t)
	}
	return own, nil
}
