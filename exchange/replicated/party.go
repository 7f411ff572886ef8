package replicated

import (
	"fmt"

	"github.com/starling-network/starling/exchange/prg"
)

// Ring passes messages around the three parties.
type Ring interface {
	// Pass gives a message to the party before this one, and returns that of the party after it.
	Pass(out []byte) (in []byte, err error)
}

// Party is one of the three in one computation. All three call the same methods in the same order, with shares of the
// same numbers. After an error the computation is over.
type Party struct {
	index     int
	own, next *prg.Stream // of the keys of this party and of the one after it
	ring      Ring
}

// New begins a computation at a party with a key that is random, secret and of this computation alone. The party before
// this one gets the key, so that both draw the same numbers.
func New(index int, key prg.Key, ring Ring) (*Party, error) {
	if index < 0 || index >= Parties {
		return nil, fmt.Errorf("%w: party %d of %d", ErrMessage, index, Parties)
	}
	b, err := ring.Pass(key[:])
	if err != nil {
		return nil, err
	}
	if len(b) != len(key) {
		return nil, fmt.Errorf("%w: a key of %d bytes", ErrMessage, len(b))
	}
	return &Party{index: index, own: prg.New(key), next: prg.New(prg.Key(b)), ring: ring}, nil
}

// holds is the place of a share in a Vector here; -1: it is not here.
func (p *Party) holds(share int) int {
	switch share {
	case p.index:
		return 0
	case (p.index + 1) % Parties:
		return 1
	}
	return -1
}

// share completes a vector of which this party has computed its own share: it gives it to the party before, and gets
// that of the party after.
func (p *Party) share(own []uint64) (Vector, error) {
	b, err := p.ring.Pass(Encode(own))
	if err != nil {
		return Vector{}, err
	}
	in, err := Decode(b, len(own))
	return Vector{own, in}, err
}

// Product are shares of the products of numbers.
func (p *Party) Product(x, y Vector) (Vector, error) {
	z := make([]uint64, len(x[0]))
	for i := range z {
		z[i] = x[0][i]*y[0][i] + x[0][i]*y[1][i] + x[1][i]*y[0][i] + p.own.Uint64() - p.next.Uint64()
	}
	return p.share(z)
}

// And are shares of the bits that words have in common.
func (p *Party) And(x, y Vector) (Vector, error) {
	z := make([]uint64, len(x[0]))
	for i := range z {
		z[i] = x[0][i]&y[0][i] ^ x[0][i]&y[1][i] ^ x[1][i]&y[0][i] ^ p.own.Uint64() ^ p.next.Uint64()
	}
	return p.share(z)
}

// Apply are shares of the products of a matrix, row by row, with a vector, plus a bias for each row. Products have
// twice FractionBits, which the bias has, too.
func (p *Party) Apply(matrix, x, bias Vector) (Vector, error) {
	columns, z := len(x[0]), make([]uint64, len(bias[0]))
	for r := range z {
		a, b := matrix[0][r*columns:(r+1)*columns], matrix[1][r*columns:(r+1)*columns]
		sum := bias[0][r] + p.own.Uint64() - p.next.Uint64()
		for i, x0 := range x[0] {
			sum += a[i]*(x0+x[1][i]) + b[i]*x0
		}
		z[r] = sum
	}
	return p.share(z)
}

// Round divides products by 2^FractionBits, with an error of at most one unit of the last bit; with a probability of
// |x|·2^-63 of the undivided number x the result is wrong by 2^(64-FractionBits) (Mohassel and Rindal 2018, 5.1.1).
// Share 0 is divided by both that hold it; the sum of the others by party 1, which holds both.
func (p *Party) Round(x Vector) (Vector, error) {
	n := len(x[0])
	out := zeros(n)
	divided := func(x uint64) uint64 { return uint64(int64(x) >> FractionBits) }
	if at := p.holds(0); at >= 0 {
		for i := range n {
			out[at][i] = divided(x[at][i])
		}
	}
	// share 2 is drawn from the key of party 2, which parties 1 and 2 have
	at := p.holds(2)
	for i := range n {
		own, next := p.own.Uint64(), p.next.Uint64()
		switch at {
		case 0:
			out[0][i] = own
		case 1:
			out[1][i] = next
		}
	}
	var message []byte
	if p.index == 1 {
		for i := range n {
			out[0][i] = divided(x[0][i]+x[1][i]) - out[1][i]
		}
		message = Encode(out[0])
	}
	b, err := p.ring.Pass(message)
	if err != nil || p.index != 0 {
		return out, err
	}
	out[1], err = Decode(b, n)
	return out, err
}

// single is a sharing of share j of a vector as numbers of their own.
func (p *Party) single(x Vector, j int) Vector {
	out := zeros(len(x[0]))
	if at := p.holds(j); at >= 0 {
		copy(out[at], x[at])
	}
	return out
}

// combined are words or numbers that a function makes of the shares of two vectors, one by one.
func combined(x, y Vector, of func(a, b uint64) uint64) Vector {
	out := zeros(len(x[0]))
	for s := range out {
		for i := range out[s] {
			out[s][i] = of(x[s][i], y[s][i])
		}
	}
	return out
}

func exclusive(x, y Vector) Vector {
	return combined(x, y, func(a, b uint64) uint64 { return a ^ b })
}

// shifted are words whose bits are moved up.
func shifted(x Vector, by int) Vector {
	return combined(x, x, func(a, _ uint64) uint64 { return a << by })
}

// both is x with y behind it; halves undoes it.
func both(x, y Vector) Vector {
	return Vector{append(append([]uint64{}, x[0]...), y[0]...), append(append([]uint64{}, x[1]...), y[1]...)}
}

func halves(x Vector) (Vector, Vector) {
	n := len(x[0]) / 2
	return Vector{x[0][:n], x[1][:n]}, Vector{x[0][n:], x[1][n:]}
}

// negative are shares of words whose lowest bit says that a number is below 0: the highest bit of the sum of its three
// shares, added as words of bits.
func (p *Party) negative(x Vector) (Vector, error) {
	a, b, c := p.single(x, 0), p.single(x, 1), p.single(x, 2)
	carry, err := p.And(exclusive(a, c), exclusive(b, c))
	if err != nil {
		return carry, err
	}
	sum, carry := exclusive(exclusive(a, b), c), shifted(exclusive(carry, c), 1)
	some := exclusive(sum, carry)
	makes, err := p.And(sum, carry) // a carry
	if err != nil {
		return makes, err
	}
	passes := some
	for by := 1; by < 64; by *= 2 { // Kogge and Stone 1973
		z, err := p.And(both(passes, passes), both(shifted(makes, by), shifted(passes, by)))
		if err != nil {
			return z, err
		}
		more, further := halves(z)
		makes, passes = exclusive(makes, more), further
	}
	return combined(some, shifted(makes, 1), func(a, b uint64) uint64 { return (a ^ b) >> 63 }), nil
}

// Positive are shares of numbers, or of 0 where a number is below 0.
func (p *Party) Positive(x Vector) (Vector, error) {
	bits, err := p.negative(x)
	if err != nil {
		return bits, err
	}
	if at := p.holds(0); at >= 0 { // of not negative
		for i := range bits[at] {
			bits[at][i] ^= 1
		}
	}
	// as numbers: a or b, and not both
	either := func(a, b Vector) (Vector, error) {
		ab, err := p.Product(a, b)
		return combined(combined(a, b, func(a, b uint64) uint64 { return a + b }), ab,
			func(sum, ab uint64) uint64 { return sum - 2*ab }), err
	}
	two, err := either(p.single(bits, 0), p.single(bits, 1))
	if err != nil {
		return two, err
	}
	flag, err := either(two, p.single(bits, 2))
	if err != nil {
		return flag, err
	}
	return p.Product(flag, x)
}
