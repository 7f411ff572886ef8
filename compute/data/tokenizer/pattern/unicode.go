package pattern

import "unicode"

// The reference implementation knows the characters of Unicode 16, package unicode of Go 1.26 those of 15. The tables
// below are the difference, so that both cut a text alike.
var (
	letters = []*unicode.RangeTable{unicode.L, letters16}
	numbers = []*unicode.RangeTable{unicode.N, numbers16}
	// OfWords are the tables of characters of words:
	OfWords = []*unicode.RangeTable{ // \w of Unicode Technical Standard 18, annex C
		unicode.L, unicode.Nl, unicode.Other_Alphabetic, unicode.M, unicode.Nd, unicode.Pc, unicode.Join_Control,
		letters16, numbers16, marks16,
	}
)

var letters16 = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x1c89, 0x1c8a, 1}, {0xa7cb, 0xa7cd, 1}, {0xa7da, 0xa7dc, 1},
	},
	R32: []unicode.Range32{
		{0x105c0, 0x105f3, 1}, {0x10d4a, 0x10d65, 1}, {0x10d6f, 0x10d85, 1}, {0x10ec2, 0x10ec4, 1},
		{0x11380, 0x11389, 1}, {0x1138b, 0x1138b, 1}, {0x1138e, 0x1138e, 1}, {0x11390, 0x113b5, 1},
		{0x113b7, 0x113b7, 1}, {0x113d1, 0x113d1, 1}, {0x113d3, 0x113d3, 1}, {0x11bc0, 0x11be0, 1},
		{0x13460, 0x143fa, 1}, {0x16100, 0x1611d, 1}, {0x16d40, 0x16d6c, 1}, {0x18cff, 0x18cff, 1},
		{0x1e5d0, 0x1e5ed, 1}, {0x1e5f0, 0x1e5f0, 1}, {0x2ebf0, 0x2ee5d, 1},
	},
}

var numbers16 = &unicode.RangeTable{
	R32: []unicode.Range32{
		{0x10d40, 0x10d49, 1}, {0x116d0, 0x116e3, 1}, {0x11bf0, 0x11bf9, 1}, {0x16130, 0x16139, 1},
		{0x16d70, 0x16d79, 1}, {0x1ccf0, 0x1ccf9, 1}, {0x1e5f1, 0x1e5fa, 1},
	},
}

var marks16 = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x0897, 0x0897, 1},
	},
	R32: []unicode.Range32{
		{0x10d69, 0x10d6d, 1}, {0x10efc, 0x10efc, 1}, {0x113b8, 0x113c0, 1}, {0x113c2, 0x113c2, 1},
		{0x113c5, 0x113c5, 1}, {0x113c7, 0x113ca, 1}, {0x113cc, 0x113d0, 1}, {0x113d2, 0x113d2, 1},
		{0x113e1, 0x113e2, 1}, {0x11f5a, 0x11f5a, 1}, {0x1611e, 0x1612f, 1}, {0x1e5ee, 0x1e5ef, 1},
	},
}

// Assigned are the tables of all characters that have a category other than those of control and of no character.
var Assigned = []*unicode.RangeTable{
	unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, letters16, numbers16, marks16,
}
