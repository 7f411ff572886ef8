package checkpoint

import (
	"bytes"
	"fmt"

	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/compute/tensor"
)

// shard is the tensors of one file.
type shard []Tensor

// head is how the file begins, and the number of bytes of all of it.
func (s shard) head() (head []byte, size int64, err error) {
	names, shapes := make([]string, len(s)), make([]tensor.Shape, len(s))
	for i, t := range s {
		names[i], shapes[i] = t.Name, t.Shape
		size += t.bytes()
	}
	head, err = safetensors.Head(names, shapes, nil)
	if err != nil {
		return nil, 0, fmt.Errorf("checkpoint: %w: %w", ErrManifest, err)
	}
	return head, int64(len(head)) + size, nil
}

// encode returns the file.
func (s shard) encode(tensors map[string]*tensor.Tensor) ([]byte, error) {
	head, size, err := s.head()
	if err != nil {
		return nil, err
	}
	data := append(make([]byte, 0, size), head...)
	for _, t := range s {
		x := tensors[t.Name]
		for leaf := range (len(x.Bytes()) + tensor.LeafBytes - 1) / tensor.LeafBytes {
			data = append(data, x.Leaf(leaf)...)
		}
		x.Rest()
	}
	return data, nil
}

// decode returns the tensors of a file, in their order, as lay returns them: ErrTensor if it is not the shard.
func (s shard) decode(data []byte, lay func(*tensor.Tensor) *tensor.Tensor) ([]*tensor.Tensor, error) {
	head, size, err := s.head()
	if err != nil {
		return nil, err
	}
	if int64(len(data)) != size || !bytes.HasPrefix(data, head) {
		return nil, fmt.Errorf("%d bytes of %d, or another header: %w", len(data), size, ErrTensor)
	}
	data = data[len(head):]
	tensors := make([]*tensor.Tensor, len(s))
	for i, t := range s {
		x, err := tensor.FromBytes(t.Shape, data[:t.bytes()])
		if err != nil {
			return nil, err
		}
		if x.Root() != t.Root {
			return nil, fmt.Errorf("%q: %w", t.Name, ErrTensor)
		}
		x.Canonicalize() // the root does not tell one NaN from another
		tensors[i], data = lay(x), data[t.bytes():]
	}
	return tensors, nil
}
