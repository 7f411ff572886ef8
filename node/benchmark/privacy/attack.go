package privacy

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/fixedpoint"
	"github.com/starling-network/starling/exchange/secagg"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/privacy/inversion"
	"github.com/starling-network/starling/node/benchmark/privacy/learner"
	"github.com/starling-network/starling/node/benchmark/privacy/sealed"
	"github.com/starling-network/starling/node/benchmark/privacy/traffic"
)

// attack adds the attacks to a report.
func (r *Report) attack(ctx context.Context, o Options) (err error) {
	if r.Inversion, err = inversion.Measure(ctx, inversion.Options{Images: o.Images, Together: o.Together, Sum: mean,
		Progress: o.Progress}); err != nil {
		return err
	}
	o.Progress("models are asked for the examples that they were trained on")
	if r.Members, err = learner.Members(ctx, attacked, o.Members); err != nil {
		return err
	}
	if r.Curve, err = learner.Curve(ctx, o.Curve, func(p learner.Point) {
		o.Progress(fmt.Sprintf("%d owners with shares of Dirichlet %g at epsilon %.3g", o.Curve.Owners, p.Dirichlet,
			p.Epsilon))
	}); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "starling-traffic-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // of this measurement alone
	o.Progress("the bytes of a federated job are searched")
	if r.Traffic, err = traffic.Measure(ctx, dir, func(string) {}); err != nil {
		return err
	}
	o.Progress("a round on encrypted data")
	if r.Sealed, err = sealed.Measure(ctx, dir); err != nil {
		return err
	}
	bare, noisy, sum, private := r.Inversion[0], r.Inversion[1], r.Inversion[2], r.Members[1]
	r.Bars = append(r.Bars,
		benchmark.AtLeast("PSNR of images that are searched in the bare update of one image, the mean", bare.Mean, recovered),
		benchmark.Below(fmt.Sprintf("PSNR of an image that the same search finds in the secure sum of %d owners, the mean",
			inversion.Owners), sum.Mean, unrecovered),
		benchmark.Below(fmt.Sprintf("PSNR of images that it finds in updates with noise of %d, the mean", inversion.Noise),
			noisy.Mean, unrecovered),
		benchmark.AtMost(fmt.Sprintf("area under the curve of an attack on membership, at epsilon %.2f (%.3f without noise)",
			private.Epsilon, r.Members[0].Area), private.Area, unrecognised),
		benchmark.AtMost(fmt.Sprintf("windows of %d bytes of the data in %d bytes that owners sent", traffic.Window,
			r.Traffic.Bytes), float64(r.Traffic.Found), 0),
		benchmark.AtMost(fmt.Sprintf("processor time of encrypted shards and their keys, of that of a round in which %d "+
			"of %d shards are read", r.Sealed.Read, r.Sealed.Shards), r.Sealed.Part, sealedPart),
		benchmark.AtMost(fmt.Sprintf("windows of %d bytes of the data in %d bytes of encrypted shards and their keys",
			traffic.Window, r.Sealed.Bytes), float64(r.Sealed.Found), 0))
	return nil
}

// longest is above the norm of all updates that are searched, so that none is clipped.
const longest = 100

// mean is that of updates, by a secure sum.
func mean(ctx context.Context, updates [][]*tensor.Tensor) ([]*tensor.Tensor, error) {
	t := secagg.Terms{Cohort: len(updates), Entries: 1}
	var shapes []tensor.Shape
	for _, x := range updates[0] {
		t.Entries, shapes = t.Entries+x.Shape.Elements(), append(shapes, x.Shape)
	}
	_, _ = rand.Read(t.Session[:]) // never fails
	server, err := secagg.NewServer(t)
	if err != nil {
		return nil, err
	}
	all := map[string]*party{}
	for _, u := range updates {
		p, advert, err := newParty(t, u, longest, 1)
		if err != nil {
			return nil, err
		}
		if err := server.Advertise(advert); err != nil {
			return nil, err
		}
		all[string(advert.Name)] = p
	}
	sum, _, err := rounds(ctx, server, all, 0, 0)
	if err != nil {
		return nil, err
	}
	return fixedpoint.Mean(sum, longest, shapes)
}
