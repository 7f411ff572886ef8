package threshold

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/starling-network/starling/canon"
)

func secret(i int) Secret { return NewSecret(fmt.Appendf(nil, "member %d", i)) }

func roster(t testing.TB, powers ...int64) Roster {
	t.Helper()
	var members []Member
	for i, p := range powers {
		members = append(members, Member{Address: []byte{byte(i)}, Key: secret(i).Public(), Power: p})
	}
	r, err := NewRoster("test", 1, members)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func equal(n int) (p []int64) {
	for range n {
		p = append(p, 10)
	}
	return p
}

// group has all members of a roster deal: it returns the key, the dealers and the deals.
func group(t testing.TB, r Roster) (public []byte, dealers []uint32, deals []Deal) {
	t.Helper()
	for i := range r.Members {
		d := NewDeal(secret(i), r, i)
		if err := d.Check(r, i); err != nil {
			t.Fatal(err)
		}
		dealers, deals = append(dealers, uint32(i)), append(deals, d)
	}
	public, err := Public(deals)
	if err != nil {
		t.Fatal(err)
	}
	return public, dealers, deals
}

// Apportion keeps its bounds for powers of every kind, against all sets of members.
func TestLessThanAThirdCannotSignAndMoreThanTwoThirdsCan(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for trial := range 300 {
		powers := make([]int64, 1+random.IntN(9))
		for i := range powers {
			powers[i] = 1 + random.Int64N([]int64{3, 100, 1 << 55}[trial%3])
		}
		shares, threshold, err := Apportion(powers)
		if err != nil {
			t.Fatal(err)
		}
		var total int64
		for _, p := range powers {
			total += p
		}
		for set := range 1 << len(powers) {
			var power int64
			var have uint32
			for i, p := range powers {
				if set>>i&1 == 1 {
					power, have = power+p, have+shares[i]
				}
			}
			if power < (total+2)/3 && have >= threshold {
				t.Fatalf("of %v, %b have %d shares with less than a third; %d sign", powers, set, have, threshold)
			}
			if power > 2*(total/3)+2 && have < threshold {
				t.Fatalf("of %v, %b have %d shares with more than two thirds; %d sign", powers, set, have, threshold)
			}
		}
	}
	for _, n := range []int{1, 4, 10, 21, 100} { // equal ones have one share each
		shares, threshold, err := Apportion(equal(n))
		if err != nil || shares[0] != 1 || int(threshold) != (n+2)/3 {
			t.Errorf("%d equal members have %v shares, %d sign (%v)", n, shares, threshold, err)
		}
	}
	for _, bad := range [][]int64{nil, {0}, {1, -1}, {1 << 62, 1 << 62, 1 << 62}, make([]int64, MaxMembers+1)} {
		if _, _, err := Apportion(bad); err == nil {
			t.Errorf("%d powers are shared out", len(bad))
		}
	}
}

// Every set of members that has enough shares makes the same signature, and no smaller one makes any.
func TestTheSignatureIsTheSameWhoeverSigns(t *testing.T) {
	r := roster(t, 50, 20, 10, 10, 10)
	public, dealers, deals := group(t, r)
	v, err := NewVerifier(r, deals)
	if err != nil {
		t.Fatal(err)
	}
	message := []byte("message")
	var all []Partial
	for i := range r.Members {
		shares, err := Own(secret(i), r, dealers, deals, i)
		if err != nil {
			t.Fatal(err)
		}
		b, err := shares.Sign(message)
		if err != nil {
			t.Fatal(err)
		}
		if right := v.Check(i, message, b); right != (len(b) > 0) || v.Check(i, []byte("other"), b) {
			t.Errorf("the partial signatures of member %d: right %v", i, right)
		}
		if len(b) > SignatureSize { // wrong ones that make up for each other
			swapped := append(bytes.Clone(b[SignatureSize:]), b[:SignatureSize]...)
			if v.Check(i, message, swapped) {
				t.Errorf("swapped partial signatures of member %d are right", i)
			}
		}
		all = append(all, Partial{i, b})
	}
	var one []byte
	for set := range 1 << len(all) {
		var some []Partial
		have := 0
		for i, p := range all {
			if set>>i&1 == 1 {
				some = append(some, p)
				have += int(r.Members[i].Shares)
			}
		}
		signature := Combine(r, some)
		switch {
		case have < int(r.Threshold) && signature != nil:
			t.Errorf("%b sign with %d shares", set, have)
		case have < int(r.Threshold):
		case one == nil:
			one = signature
			if !Verify(public, message, one) || Verify(public, []byte("other"), one) {
				t.Error("the signature is not of the message")
			}
		case !bytes.Equal(one, signature):
			t.Errorf("%b make another signature", set)
		}
	}
}

// The member whose share in a deal is wrong can prove it, and a complaint about a right deal is refused.
func TestAWrongShareIsShownAndARightOneIsNot(t *testing.T) {
	r := roster(t, equal(4)...)
	right := NewDeal(secret(0), r, 0)
	wrong := right
	wrong.Shares = bytes.Clone(right.Shares)
	wrong.Shares[2*ShareSize+31] ^= 1 // of member 2
	if err := wrong.Check(r, 0); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < 4; i++ {
		_, complaint, err := wrong.Read(secret(i), r, 0, i)
		if err != nil || (complaint != nil) != (i == 2) {
			t.Fatalf("member %d complains: %v (%v)", i, complaint != nil, err)
		}
		if i != 2 {
			continue
		}
		if !complaint.Upheld(wrong, r, 2) {
			t.Error("the complaint is not upheld")
		}
		if complaint.Upheld(right, r, 2) {
			t.Error("the complaint is upheld about a right deal")
		}
		if complaint.Upheld(wrong, r, 1) {
			t.Error("the complaint is upheld for another member")
		}
		for _, b := range [][]byte{complaint.Shared, complaint.Proof} {
			for _, at := range []int{1, len(b) - 1} {
				b[at] ^= 1
				if complaint.Upheld(wrong, r, 2) {
					t.Errorf("the complaint is upheld with byte %d changed", at)
				}
				b[at] ^= 1
			}
		}
	}
	// A made-up key for a right share has no proof.
	key := secret(7).Public()
	lie := Complaint{Dealer: 0, Share: 3, Shared: key}
	lie.Proof = answer(fr.NewElement(3), fr.NewElement(5), fr.NewElement(7))
	if lie.Upheld(right, r, 2) {
		t.Error("a made-up complaint is upheld")
	}
	// A member cannot deal under the ephemeral key of another, whose shares a complaint would reveal.
	if right.Check(r, 1) == nil {
		t.Error("a deal is right for another dealer")
	}
	other := r
	other.Epoch = 2
	if right.Check(other, 0) == nil {
		t.Error("a deal is right for another roster")
	}
}

func FuzzDeal(f *testing.F) {
	r := roster(f, equal(2)...)
	d := NewDeal(secret(0), r, 0)
	f.Add(canon.MustMarshal(d))
	f.Fuzz(func(t *testing.T, b []byte) {
		var d Deal
		if canon.Unmarshal(b, &d) != nil || d.Check(r, 0) != nil {
			return
		}
		if _, complaint, err := d.Read(secret(1), r, 0, 1); err != nil || complaint != nil && !complaint.Upheld(d, r, 1) {
			t.Errorf("a deal that passes is neither read nor shown to be wrong (%v)", err)
		}
	})
}

// The cost of a block of 21 members: one signature combined and checked.
func BenchmarkBlock(b *testing.B) {
	for _, n := range []int{1, 4, 21, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := roster(b, equal(n)...)
			_, dealers, deals := group(b, r)
			public, err := Public(deals)
			if err != nil {
				b.Fatal(err)
			}
			var all []Partial
			for i := range int(r.Threshold) {
				shares, err := Own(secret(i), r, dealers, deals, i)
				if err != nil {
					b.Fatal(err)
				}
				p, _ := shares.Sign([]byte("message"))
				all = append(all, Partial{i, p})
			}
			for b.Loop() {
				if !Verify(public, []byte("message"), Combine(r, all)) {
					b.Fatal("wrong")
				}
			}
		})
	}
}
