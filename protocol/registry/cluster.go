package registry

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// Node is a participant that may be grouped with others.
type Node struct {
	ID      string
	Class   Class
	Region  string // none: unknown
	Upload  uint64 // kbit/s; 0: unknown
	Cluster string // empty: none
}

// Pair names two participants, the lesser first.
type Pair struct{ A, B string }

// PairOf orders two participants.
func PairOf(a, b string) Pair { return Pair{min(a, b), max(a, b)} }

// Clusters groups participants by the round-trip times measured between them, and returns the cluster of each: the
// least account in it. Two clusters are joined, the closest two first, as long as any two members are of one class, in
// one region if both are known, have uploads of which one is at most Params.ClusterUpload times the other if both are
// known, are at most Params.ClusterRTT apart, and they are no more than Params.ClusterSize. Two without a measurement
// between them are not close, unless they are in one cluster already: then they count as Params.ClusterRTT apart, so
// that an epoch without measurements changes nothing. Two that are in one cluster already count as closer, and their
// uploads as more alike, by Params.StickyPPM, so that noise moves no participant. Ties go to the lesser account.
//
// It is agglomerative clustering with complete linkage, which is deterministic. Time is quadratic in the number of
// measured pairs at worst, with a small constant.
func Clusters(nodes []Node, rtt map[Pair]uint32, params Params) map[string]string {
	nodes = slices.Clone(nodes)
	slices.SortFunc(nodes, func(a, b Node) int { return cmp.Compare(a.ID, b.ID) })
	g := grouping{groups: make([][]Node, len(nodes)), rtt: rtt, params: params}
	at := map[string]int{}
	for i, n := range nodes {
		g.groups[i], at[n.ID] = []Node{n}, i
	}
	near := g.kept(nodes)
	for p, ms := range rtt {
		a, known := at[p.A]
		b, also := at[p.B]
		if known && also && a != b && ms > 0 {
			near = append(near, edge{a, b, g.distance(nodes[a], nodes[b])})
		}
	}
	// The order of a map does not matter: edges are sorted by distance, then by their ends, which are unique.
	slices.SortFunc(near, func(x, y edge) int {
		return cmp.Or(cmp.Compare(x.far, y.far), cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b))
	})
	g.join(near)
	found := map[string]string{}
	for _, group := range g.groups {
		for _, n := range group {
			found[n.ID] = group[0].ID
		}
	}
	return found
}

// grouping is a partition of the nodes; a group is sorted by account, and the one of a node that joined another is
// empty.
type grouping struct {
	groups [][]Node
	rtt    map[Pair]uint32
	params Params
}

// edge is between two groups: the distance of the two of them that are furthest apart.
type edge struct {
	a, b int
	far  uint64
}

const apart = 1 << 62

// kept are the edges between nodes of one cluster without a measurement between them.
func (g *grouping) kept(nodes []Node) (near []edge) {
	members := map[string][]int{}
	for i, n := range nodes {
		for _, j := range members[n.Cluster] {
			if g.rtt[PairOf(n.ID, nodes[j].ID)] == 0 {
				near = append(near, edge{j, i, g.distance(nodes[j], n)})
			}
		}
		if n.Cluster != "" {
			members[n.Cluster] = append(members[n.Cluster], i)
		}
	}
	return near
}

// distance of two nodes in millionths of a millisecond, or apart.
func (g *grouping) distance(a, b Node) uint64 {
	ms, counts, together := uint64(g.rtt[PairOf(a.ID, b.ID)]), uint64(million), a.Cluster != "" && a.Cluster == b.Cluster
	if together {
		counts -= uint64(g.params.StickyPPM)
	}
	switch {
	case ms == 0 && !together, a.Class != b.Class, a.Region != b.Region && a.Region != "" && b.Region != "",
		!g.alike(a.Upload, b.Upload, counts):
		return apart
	case ms == 0:
		return uint64(g.params.ClusterRTT) * million
	}
	return ms * counts
}

// alike reports whether two uploads are, the larger counted as so many millionths of it.
func (g *grouping) alike(a, b, counts uint64) bool {
	small, large := min(a, b), max(a, b)
	if small == 0 || g.params.ClusterUpload == 0 {
		return true
	}
	high, low := bits.Mul64(large, counts)
	wide, most := bits.Mul64(multiply(small, uint64(g.params.ClusterUpload)), million)
	return high < wide || high == wide && low <= most
}

// multiply saturates far beyond what a line carries.
func multiply(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	if high > 0 {
		return math.MaxUint64
	}
	return low
}

// join joins the closest groups while there are any. Only edges below the limit are kept.
func (g *grouping) join(near []edge) {
	limit := uint64(g.params.ClusterRTT) * million
	near = slices.DeleteFunc(near, func(e edge) bool { return e.far > limit })
	for len(near) > 0 {
		e := near[0]
		a, b := min(e.a, e.b), max(e.a, e.b)
		if len(g.groups[a])+len(g.groups[b]) > int(g.params.ClusterSize) {
			near = near[1:]
			continue
		}
		g.groups[a] = append(g.groups[a], g.groups[b]...)
		g.groups[b] = nil
		slices.SortFunc(g.groups[a], func(x, y Node) int { return cmp.Compare(x.ID, y.ID) })
		near = g.again(near, a, b, limit)
	}
}

// again recomputes the edges of group a, which group b joined.
func (g *grouping) again(near []edge, a, b int, limit uint64) []edge {
	var rest []edge
	seen := map[int]bool{}
	for _, e := range near {
		if e.a != a && e.b != a && e.a != b && e.b != b {
			rest = append(rest, e)
			continue
		}
		other := e.a
		if other == a || other == b {
			other = e.b
		}
		if other == a || other == b || seen[other] {
			continue
		}
		seen[other] = true
		if far := g.furthest(a, other); far <= limit {
			rest = append(rest, edge{min(a, other), max(a, other), far})
		}
	}
	slices.SortFunc(rest, func(x, y edge) int {
		return cmp.Or(cmp.Compare(x.far, y.far), cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b))
	})
	return rest
}

func (g *grouping) furthest(a, b int) (far uint64) {
	for _, x := range g.groups[a] {
		for _, y := range g.groups[b] {
			far = max(far, g.distance(x, y))
		}
	}
	return far
}
