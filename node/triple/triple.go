// Package triple answers questions about images with a multilayer perceptron whose weights three parties hold shares
// of, so that no party alone sees a weight or a pixel
// (docs/adr/0220-ciphertexts-are-opened-by-the-sum-of-their-keys.md). It divides a model, reads the folder of a party,
// and computes; node/triple/linked connects parties and clients.
package triple

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/starling-network/starling/compute/data/picture"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/compute/model/vision"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/prg"
	"github.com/starling-network/starling/exchange/replicated"
	files "github.com/starling-network/starling/node/folder"
)

// Errors of this package.
var (
	ErrModel = errors.New("the weights of this model cannot be divided")
	ErrShare = errors.New("not the folder of a party")
)

// Manifest says which model it is, and is the same at all parties but for Party.
type Manifest struct {
	Party  int      `json:"party"`  // 0, 1 or 2
	Split  string   `json:"split"`  // drawn for each division: shares of two do not fit
	Image  [3]int   `json:"image"`  // rows, columns and channels
	Labels []string `json:"labels"` // of the classes
	Widths []int    `json:"widths"` // the values of an image, and the outputs of each layer
	Bound  float64  `json:"bound"`  // a score differs from that of the model by no more, but with a probability of
	Risk   float64  `json:"risk"`   // this for each image
}

// Same reports whether two parties have shares of one division, and say the same of it.
func (m Manifest) Same(o Manifest) bool {
	return m.Split == o.Split && m.Image == o.Image && slices.Equal(m.Labels, o.Labels) &&
		slices.Equal(m.Widths, o.Widths) && m.Bound == o.Bound && m.Risk == o.Risk
}

// Size is that of an image.
func (m Manifest) Size() picture.Size {
	return picture.Size{Rows: m.Image[0], Columns: m.Image[1], Channels: m.Image[2]}
}

// Limits of a model.
const (
	maxLayers = 16
	maxClass  = 1 << 10
	maxScore  = 1 << 13 // of a unit before rounding: Round fails with a probability in proportion to it
)

// ReadManifest reads the manifest that a party sends.
func ReadManifest(b []byte) (m Manifest, err error) {
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("%w: %w", ErrShare, err)
	}
	return m, m.check()
}

// check refuses a manifest that no division writes.
func (m Manifest) check() error {
	if m.Party < 0 || m.Party >= replicated.Parties || len(m.Split) != 32 || len(m.Widths) < 2 ||
		len(m.Widths) > maxLayers+1 || len(m.Labels) > maxClass || m.Widths[len(m.Widths)-1] != len(m.Labels) {
		return fmt.Errorf("%w: party %d of a model with %d layers and %d classes", ErrShare, m.Party, len(m.Widths)-1,
			len(m.Labels))
	}
	words := 0
	for i, w := range m.Widths {
		if w < 1 || w > replicated.MaxWords {
			return fmt.Errorf("%w: a layer of %d units", ErrShare, w)
		}
		if i > 0 {
			words += w * (m.Widths[i-1] + 1)
		}
		if words > replicated.MaxWords {
			return fmt.Errorf("%w: more than %d weights", ErrShare, replicated.MaxWords)
		}
	}
	s := m.Size()
	if min(s.Rows, s.Columns, s.Channels) < 1 || max(s.Rows, s.Columns) > picture.MaxPixels || s.Channels > 3 ||
		s.Values() != m.Widths[0] {
		return fmt.Errorf("%w: images of %v, and %d values", ErrShare, s, m.Widths[0])
	}
	return nil
}

// words is the number of weights and biases.
func (m Manifest) words() (n int) {
	for i, w := range m.Widths[1:] {
		n += w * (m.Widths[i] + 1)
	}
	return n
}

// Files of the folder of a party.
const (
	FileManifest = "party.json"
	fileShares   = "shares.bin" // of weights and then biases, layer after layer: those of the party, then of the next
)

// Share is the part of a model that one party holds.
type Share struct {
	Manifest
	values replicated.Vector
}

// Divide writes the folders of the three parties of a model, below a new folder.
func Divide(model fs.FS, out string) (Manifest, error) {
	m, values, err := fixed(model)
	if err != nil {
		return m, err
	}
	if err := os.Mkdir(out, 0o755); err != nil {
		return m, err
	}
	var key prg.Key
	_, _ = rand.Read(key[:]) // never fails
	for i, v := range replicated.Split(values, key) {
		dir := filepath.Join(out, Name(i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return m, err
		}
		m.Party = i
		if err := errors.Join(files.WriteSecret(filepath.Join(dir, fileShares), replicated.Encode(slices.Concat(v[0], v[1]))),
			files.WriteJSON(filepath.Join(dir, FileManifest), m)); err != nil {
			return m, err
		}
	}
	return m, nil
}

// Name is the name of the folder of a party.
func Name(party int) string { return fmt.Sprintf("party-%d", party+1) }

// fixed are the weights and biases of a model as numbers of package replicated, layer after layer.
func fixed(model fs.FS) (m Manifest, values []uint64, err error) {
	config, err := fs.ReadFile(model, "config.json")
	if err != nil {
		return m, nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	n, err := vision.Read(config)
	if err != nil {
		return m, nil, fmt.Errorf("%w: config.json: %w", ErrModel, err)
	}
	if n.Architecture() != vision.MLP {
		return m, nil, fmt.Errorf("%w: it is a %s, and three parties compute an %s", ErrModel, n.Architecture(), vision.MLP)
	}
	weights, err := folder.ReadExact(model, n.Tensors(), train.Param)
	if err != nil {
		return m, nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	split := make([]byte, 16)
	_, _ = rand.Read(split) // never fails
	m = Manifest{Split: hex.EncodeToString(split), Labels: n.Labels(), Widths: []int{n.Example()}}
	m.Image = [3]int{n.Size().Rows, n.Size().Columns, n.Size().Channels}
	e := newErrors(n.Example())
	for i := range len(n.Tensors()) / 2 {
		name := fmt.Sprintf("%sfc%d.", train.Param, i+1)
		w, b := weights[name+"weight"], weights[name+"bias"]
		m.Widths = append(m.Widths, w.Shape.Dims[0])
		if err := e.layer(w.F32(), b.F32()); err != nil {
			return m, nil, err
		}
		for _, x := range w.F32() {
			values = append(values, replicated.Fixed(float64(x), false))
		}
		for _, x := range b.F32() {
			values = append(values, replicated.Fixed(float64(x), true))
		}
	}
	m.Bound, m.Risk = slices.Max(e.away), e.risk
	if err := m.check(); err != nil {
		return m, nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	return m, values, nil
}

// Open reads the folder of a party.
func Open(dir string) (*Share, error) {
	s := &Share{}
	if err := files.ReadJSON(filepath.Join(dir, FileManifest), &s.Manifest); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrShare, err)
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(filepath.Join(dir, fileShares))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrShare, err)
	}
	n := s.words()
	if len(raw) != 16*n {
		return nil, fmt.Errorf("%w: %d bytes of shares, wanted %d", ErrShare, len(raw), 16*n)
	}
	for k := range s.values {
		if s.values[k], err = replicated.Decode(raw[8*n*k:8*n*(k+1)], n); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Scores are shares of the scores of the classes, of an image whose values the party has shares of.
func (s *Share) Scores(p *replicated.Party, x replicated.Vector) (_ replicated.Vector, err error) {
	at := 0
	take := func(n int) replicated.Vector {
		at += n
		return replicated.Vector{s.values[0][at-n : at], s.values[1][at-n : at]}
	}
	for i, out := range s.Widths[1:] {
		weight := take(out * s.Widths[i])
		if x, err = p.Apply(weight, x, take(out)); err != nil {
			return x, err
		}
		if x, err = p.Round(x); err != nil {
			return x, err
		}
		if i+2 < len(s.Widths) {
			if x, err = p.Positive(x); err != nil {
				return x, err
			}
		}
	}
	return x, nil
}

// Values are the numbers of an image as the network sees them, from -1 to 1.
func Values(p picture.Picture) []uint64 {
	out := make([]uint64, len(p.Values))
	for i, v := range p.Values {
		out[i] = replicated.Fixed((float64(v)-127.5)/127.5, false)
	}
	return out
}

// errorsOf follows how far units are from those of the model.
type errorsOf struct {
	most []float64 // absolute value of each unit, at most
	away []float64 // and its difference
	risk float64
}

func newErrors(inputs int) *errorsOf {
	return &errorsOf{most: slices.Repeat([]float64{1}, inputs), away: slices.Repeat([]float64{half}, inputs)}
}

// half is the largest error of a number that is rounded to the grid.
var half = math.Ldexp(0.5, -replicated.FractionBits)

// layer takes a dense layer into account. Its relu, if it has one, makes no difference larger.
func (e *errorsOf) layer(weight, bias []float32) error {
	var most, away []float64
	for r, b := range bias {
		sum, d := math.Abs(float64(b)), 5*half // Round is wrong by less than two units, and the bias by little
		for j, w := range weight[r*len(e.most) : (r+1)*len(e.most)] {
			a := math.Abs(float64(w))
			sum += float64(a * e.most[j])
			d += float64((a+half)*e.away[j]) + float64(half*e.most[j])
		}
		d += float64(sum * float64(len(e.most)) * 0x1p-23) // of float32
		if !(sum+d <= maxScore) {
			return fmt.Errorf("%w: a unit may be %.3g with its error, and at most %d", ErrModel, sum+d, maxScore)
		}
		e.risk += math.Ldexp(sum+d, 2*replicated.FractionBits-63)
		most, away = append(most, sum), append(away, d)
	}
	e.most, e.away = most, away
	return nil
}
