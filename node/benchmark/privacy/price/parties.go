// Package price measures what it costs to ask a model that three parties hold shares of, and compares it with the same
// answers in the clear. The price of sums is in node/federated/sums.
package price

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data/picture"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/compute/model/vision"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/replicated"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/privacy/digits"
	"github.com/starling-network/starling/node/benchmark/privacy/network"
	"github.com/starling-network/starling/node/federated/sums"
	"github.com/starling-network/starling/node/triple"
	"github.com/starling-network/starling/node/triple/linked"
)

// Answer is the price of the scores of an image.
type Answer struct {
	Way       string  `json:"way"` // clear, or three parties
	Images    int     `json:"images"`
	Weights   int     `json:"weights"`
	Sent      int     `json:"sent"` // bytes of an image by its owner
	Received  int     `json:"received"`
	Processor float64 `json:"seconds"` // processor time of all for an image
	Elapsed   float64 `json:"elapsed_seconds"`
	Away      float64 `json:"away"`  // largest difference of a score from that of the model
	Bound     float64 `json:"bound"` // that is stated
	Protects  string  `json:"protects"`
	Leaves    string  `json:"leaves"`
}

// seed draws the weights of the perceptron that answers, and the images.
const seed = 9

// Answers asks a drawn perceptron for the classes of digits: in the clear, and divided among three parties, which are
// hosts of this process over real connections.
func Answers(ctx context.Context, images int, dir string) ([]Answer, error) {
	n, err := network.New(vision.MLP, nil, seed, 1)
	if err != nil {
		return nil, err
	}
	var list []picture.Picture
	for i := range images {
		tokens := make([]int32, digits.Size.Values()+1)
		digits.Draw(seed, i, i%digits.Classes).Tokens(tokens)
		p := picture.Picture{Size: digits.Size, Values: make([]byte, digits.Size.Values())}
		for k := range p.Values {
			p.Values[k] = byte(tokens[k+1])
		}
		list = append(list, p)
	}
	open := Answer{Way: sums.Clear, Images: images, Weights: n.Vision.Parameters(), Sent: digits.Size.Values(),
		Received: 4 * digits.Classes, Protects: "nothing", Leaves: "the image to the holder of the model"}
	want, err := open.whole(n, list)
	if err != nil {
		return nil, err
	}
	three := Answer{Way: "three parties", Images: images, Weights: open.Weights,
		Protects: "weights and images from each party alone, if it follows the protocol",
		Leaves:   "both to two parties together; the scores to the owner of the image"}
	err = three.divided(ctx, n, list, want, dir)
	return []Answer{open, three}, err
}

// whole computes scores with the model.
func (a *Answer) whole(n *network.Network, images []picture.Picture) (all [][]float32, err error) {
	p, err := model.Scores(n.Vision, 1)
	if err != nil {
		return nil, err
	}
	x, err := cpu.Compile(p, 1)
	if err != nil {
		return nil, err
	}
	in := map[string]*tensor.Tensor{"tokens": tensor.New(tensor.Make(tensor.Int32, 1, digits.Size.Values()))}
	for i, name := range n.Names {
		in[train.Param+name] = n.Weights[i]
	}
	var took time.Duration
	begun := time.Now()
	for _, image := range images {
		for k, v := range image.Values {
			in["tokens"].I32()[k] = int32(v)
		}
		if err := sums.Timed(&took, func() error {
			out, err := x.Run(in)
			for _, t := range out {
				all = append(all, append([]float32{}, t.F32()...))
			}
			return err
		}); err != nil {
			return nil, err
		}
	}
	a.spent(took, time.Since(begun))
	return all, nil
}

func (a *Answer) spent(processor, elapsed time.Duration) {
	a.Processor = benchmark.Rounded(processor.Seconds()/float64(a.Images), 5)
	a.Elapsed = benchmark.Rounded(elapsed.Seconds()/float64(a.Images), 4)
}

// divided asks three parties, and compares their scores with those of the model.
func (a *Answer) divided(ctx context.Context, n *network.Network, images []picture.Picture, want [][]float32,
	dir string) (err error) {
	if err := write(n, dir); err != nil {
		return err
	}
	out := filepath.Join(dir, "parties")
	if _, err := triple.Divide(os.DirFS(dir), out); err != nil {
		return err
	}
	var hosts [replicated.Parties + 1]*peer.Host
	var addrs [replicated.Parties]string
	for i := range hosts {
		key, err := peer.GenerateKey()
		if err != nil {
			return err
		}
		if hosts[i], err = peer.New(peer.Config{Key: key, Store: blob.NewMemory()}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, hosts[i].Close()) }()
		if i < len(addrs) {
			addrs[i] = hosts[i].Addrs()[0]
		}
	}
	client := hosts[replicated.Parties]
	for i := range addrs {
		s, err := triple.Open(filepath.Join(out, triple.Name(i)))
		if err == nil {
			err = linked.Serve(ctx, hosts[i], s, addrs, func(id peer.ID) bool { return id == client.ID() })
		}
		if err != nil {
			return err
		}
	}
	c, err := linked.Connect(ctx, client, addrs)
	if err != nil {
		return err
	}
	defer c.Close()
	a.Bound = benchmark.Rounded(c.Manifest.Bound, 4)
	var took time.Duration
	begun := time.Now()
	for i, image := range images {
		var scores []float64
		if err := sums.Timed(&took, func() (err error) {
			scores, err = c.Scores(ctx, image)
			return err
		}); err != nil {
			return fmt.Errorf("image %d: %w", i, err)
		}
		for k, x := range scores {
			a.Away = max(a.Away, math.Abs(x-float64(want[i][k])))
		}
	}
	a.spent(took, time.Since(begun))
	a.Away = benchmark.Rounded(a.Away, 6)
	a.Sent, a.Received = c.Sent/len(images), c.Received/len(images)
	return nil
}

// write writes the folder of a model.
func write(n *network.Network, dir string) error {
	var file bytes.Buffer
	weights := map[string]*tensor.Tensor{}
	for i, name := range n.Names {
		weights[name] = n.Weights[i]
	}
	return errors.Join(safetensors.EncodeAs(&file, n.Names, weights, nil, nil),
		os.WriteFile(filepath.Join(dir, "config.json"), n.Vision.JSON(), 0o600),
		os.WriteFile(filepath.Join(dir, "model.safetensors"), file.Bytes(), 0o600))
}
