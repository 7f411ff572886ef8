// Package drawn draws images with trained networks that estimate noise. It trains none.
package drawn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io/fs"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data/picture"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/diffusion"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/compute/model/noising"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

// ErrModel wraps every reason why a folder holds no model that draws images.
var ErrModel = errors.New("not a model that draws images")

// atOnce is how many images are drawn at a time.
const atOnce = 16

// Model is a trained network.
type Model struct {
	network diffusion.Network
	weights map[string]*tensor.Tensor // by the names of the inputs of programs
}

// Open reads config.json and model.safetensors. Errors wrap ErrModel.
func Open(dir fs.FS) (*Model, error) {
	config, err := fs.ReadFile(dir, "config.json")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	m := &Model{}
	if m.network, err = diffusion.Read(config); err != nil {
		return nil, fmt.Errorf("%w: config.json: %w", ErrModel, err)
	}
	if m.weights, err = folder.ReadExact(dir, m.network.Tensors(), train.Param); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	return m, nil
}

// Sample draws images (Ho et al. 2020, algorithm 2, with estimated images held to the values that there are). Image i
// of a seed has the same bits on every machine, whatever the number of images is.
func (m *Model) Sample(ctx context.Context, count int, seed uint64, threads int) (all []picture.Picture, err error) {
	p, err := model.Noise(m.network, atOnce)
	if err != nil {
		return nil, err
	}
	x, err := cpu.Compile(p, threads)
	if err != nil {
		return nil, err
	}
	for first := 0; first < count; first += atOnce {
		some, err := m.some(ctx, x, seed, first)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all[:count], nil
}

// some draws atOnce images, from a number on.
func (m *Model) some(ctx context.Context, exec *cpu.Exec, seed uint64, first int) ([]picture.Picture, error) {
	size, steps := m.network.Example(), m.network.Steps()
	in := map[string]*tensor.Tensor{"x": tensor.New(tensor.Make(tensor.Float32, atOnce, size)),
		"times": tensor.New(tensor.Make(tensor.Float32, atOnce))}
	for name, w := range m.weights {
		in[name] = w
	}
	x, noise := in["x"].F32(), make([]float32, atOnce*size)
	draw := func(to []float32, at int) { // time at-1 reads what stream at of an image gives; the last one begins
		for i := range atOnce {
			stream := uint64(first+i)*uint64(len(steps)+1) + uint64(at)
			philox.NormalTo(to[i*size:(i+1)*size], seed, stream)
		}
	}
	draw(x, len(steps))
	for t := len(steps) - 1; t >= 0; t-- {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for i := range in["times"].F32() {
			in["times"].F32()[i] = float32(t)
		}
		out, err := exec.Run(in)
		if err != nil {
			return nil, err
		}
		draw(noise, t)
		back(x, out["noise"].F32(), noise, steps[t])
	}
	all := make([]picture.Picture, atOnce)
	for i := range all {
		all[i] = picture.Picture{Size: m.network.Size(), Values: make([]byte, size)}
		for k, v := range x[i*size : (i+1)*size] {
			all[i].Values[k] = byte(min(255, max(0, float32(v*noising.Middle)+noising.Middle+0.5)))
		}
	}
	return all, nil
}

// back makes of noisy images those of the time before, from the estimated noise in them and new noise. Every operation
// is rounded to float32.
func back(x, estimated, noise []float32, s diffusion.Step) {
	for i, v := range x {
		clean := float32(v-float32(s.Added*estimated[i])) / s.Kept
		clean = min(1, max(-1, clean))
		mean := float32(s.OfImage*clean) + float32(s.OfOld*v)
		x[i] = mean + float32(s.Deviation*noise[i])
	}
}

// PNG is images of one size in a sheet of a number of columns, with a dark line between them.
func PNG(all []picture.Picture, columns int) ([]byte, error) {
	size := all[0].Size
	rows := (len(all) + columns - 1) / columns
	sheet := image.NewRGBA(image.Rect(0, 0, columns*(size.Columns+1)-1, rows*(size.Rows+1)-1))
	for i := 3; i < len(sheet.Pix); i += 4 {
		sheet.Pix[i] = 255
	}
	for i, p := range all {
		left, top := i%columns*(size.Columns+1), i/columns*(size.Rows+1)
		for y := range size.Rows {
			for x := range size.Columns {
				v := p.Values[(y*size.Columns+x)*size.Channels:]
				c := color.RGBA{v[0], v[0], v[0], 255}
				if size.Channels == 3 {
					c = color.RGBA{v[0], v[1], v[2], 255}
				}
				sheet.SetRGBA(left+x, top+y, c)
			}
		}
	}
	var out bytes.Buffer
	err := png.Encode(&out, sheet)
	return out.Bytes(), err
}
