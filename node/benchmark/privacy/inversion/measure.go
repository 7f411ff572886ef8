package inversion

import (
	"context"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/dpsgd"
	"github.com/starling-network/starling/exchange/prg"
	"github.com/starling-network/starling/node/benchmark/privacy/digits"
)

// Found is what a search found, in decibels against the images of owners.
type Found struct {
	From     string  `json:"from"` // what the coordinator sees
	Searches int     `json:"searches"`
	Mean     float64 `json:"mean_psnr"` // over the owners
	Best     float64 `json:"best_psnr"`
	Picked   int     `json:"picked"` // owners whose image is nearest to the one found, of 101 of their digit
	Away     float64 `json:"away"`   // by how much its gradient is off, relatively, the mean
}

// Owners is how many have one image each.
const Owners = 10

// Options of a measurement.
type Options struct {
	Images   int // of bare updates that are searched
	Together int // steps of the search for all images of a sum; 0: there is none
	// Sum is the mean of updates, as a coordinator gets it.
	Sum      func(ctx context.Context, updates [][]*tensor.Tensor) ([]*tensor.Tensor, error)
	Progress func(string)
}

// Noise is that of the noisy updates which are searched, in clipping norms.
const Noise = 1

// Measure searches for the images of owners: in bare updates, in updates with noise, and in the sum of all, for one
// image and for all together.
func Measure(ctx context.Context, o Options) (all []Found, err error) {
	n, err := New(3)
	if err != nil {
		return nil, err
	}
	var images []digits.Example
	var updates [][]*tensor.Tensor
	for i := range Owners {
		images = append(images, digits.Draw(5, i, i*3%digits.Classes))
		g, err := n.Gradient(images[i])
		if err != nil {
			return nil, err
		}
		updates = append(updates, g)
	}
	alone := func(from string, of func(i int) ([]float64, error)) error {
		o.Progress("images are searched in " + from)
		f := Found{From: from, Searches: o.Images}
		for i := range o.Images {
			g, err := of(i)
			if err != nil {
				return err
			}
			found, away, err := n.Search(ctx, g, []int{Label(g)}, Search{Starts: 4, Steps: 60})
			if err != nil {
				return err
			}
			f.add(images[i], found[0], o.Images)
			f.Away += away / float64(o.Images)
		}
		all = append(all, f)
		return nil
	}
	if err := alone("the bare update of an owner", func(i int) ([]float64, error) {
		return Flat(updates[i]), nil
	}); err != nil {
		return nil, err
	}
	if err := alone("an update with noise", func(i int) ([]float64, error) {
		return n.Noisy(images[i], dpsgd.Terms{Clip: 1, Noise: Noise, Lot: 1}, prg.Key{4, byte(i)})
	}); err != nil {
		return nil, err
	}
	mean, err := o.Sum(ctx, updates)
	if err != nil {
		return nil, err
	}
	sum := Flat(mean)
	o.Progress("an image is searched in a sum")
	found, away, err := n.Search(ctx, sum, []int{Label(sum)}, Search{Starts: 4, Steps: 60})
	if err != nil {
		return nil, err
	}
	f := Found{From: "the secure sum of ten owners", Searches: 1, Away: away}
	for _, e := range images {
		f.add(e, found[0], Owners)
	}
	all = append(all, f, guessed(images))
	if o.Together == 0 {
		return all, nil
	}
	o.Progress("ten images are searched together in a sum")
	var labels []int
	for _, e := range images {
		labels = append(labels, e.Digit)
	}
	if found, away, err = n.Search(ctx, sum, labels, Search{Starts: 1, Steps: o.Together}); err != nil {
		return nil, err
	}
	f = Found{From: "the same sum, ten images together, with known digits", Searches: 1, Away: away}
	for i, e := range images {
		f.add(e, found[i], Owners)
	}
	return append(all, f), nil
}

// guessed is how near the mean of other images of a digit is to an image, for one who knows the digit and no update.
func guessed(images []digits.Example) Found {
	f := Found{From: "nothing: the mean of 100 other images of the digit", Searches: 0, Away: 1}
	for _, e := range images {
		var mean digits.Example
		for i := range others {
			for k, p := range digits.Draw(6, i, e.Digit).Pixels {
				mean.Pixels[k] += p
			}
		}
		for k := range mean.Pixels {
			mean.Pixels[k] /= others
		}
		f.add(e, mean, Owners)
	}
	return f
}

// others is with how many images of its digit an image is compared.
const others = 100

// add adds an image that was found for one of a number of owners.
func (f *Found) add(e, found digits.Example, n int) {
	psnr := PSNR(e, found)
	f.Mean += psnr / float64(n)
	f.Best = max(f.Best, psnr)
	for i := range others {
		if PSNR(digits.Draw(7, i, e.Digit), found) >= psnr {
			return
		}
	}
	f.Picked++
}
