package script

import (
	"slices"

	"github.com/starling-network/starling/compute/grade/script/value"
)

// methods compute a method of a value.
type methods[T any] map[string]func(m *machine, x T, a arguments) value.Value

// method is x.name.
func (m *machine) method(x value.Value, name string) value.Value {
	var call func(m *machine, a arguments) value.Value
	switch x := x.(type) {
	case string:
		call = bound(ofString, x, name)
	case *value.List:
		call = bound(ofList, x, name)
	case *value.Dict:
		call = bound(ofDict, x, name)
	}
	if call == nil {
		m.Fail("a %s has no method %s", value.TypeOf(x), name)
	}
	return &builtin{name, call}
}

func bound[T any](of methods[T], x T, name string) func(m *machine, a arguments) value.Value {
	f, ok := of[name]
	if !ok {
		return nil
	}
	return func(m *machine, a arguments) value.Value { return f(m, x, a) }
}

var ofList = methods[*value.List]{
	"append": func(m *machine, x *value.List, a arguments) value.Value {
		m.take(a, 1, 1)
		value.Changes(m.Meter, x)
		x.Elems = append(x.Elems, a.list[0])
		return nil
	},
	"extend": func(m *machine, x *value.List, a arguments) value.Value {
		m.take(a, 1, 1)
		value.Extend(m.Meter, x, a.list[0])
		return nil
	},
	"insert": func(m *machine, x *value.List, a arguments) value.Value {
		m.take(a, 2, 2)
		value.Changes(m.Meter, x)
		n := int64(len(x.Elems))
		i := value.Int(m.Meter, a.list[0])
		if i < 0 {
			i += n
		}
		m.Spend(len(x.Elems))
		x.Elems = slices.Insert(x.Elems, int(min(max(i, 0), n)), a.list[1])
		return nil
	},
	"pop": func(m *machine, x *value.List, a arguments) value.Value {
		m.take(a, 0, 1)
		value.Changes(m.Meter, x)
		i := value.Place(m.Meter, a.or(0, int64(-1)), len(x.Elems))
		v := x.Elems[i]
		m.Spend(len(x.Elems) - i)
		x.Elems = slices.Delete(x.Elems, i, i+1)
		return v
	},
	"remove": func(m *machine, x *value.List, a arguments) value.Value {
		i := listIndex(m, x, a)
		value.Changes(m.Meter, x)
		m.Spend(len(x.Elems) - i)
		x.Elems = slices.Delete(x.Elems, i, i+1)
		return nil
	},
	"clear": func(m *machine, x *value.List, a arguments) value.Value {
		m.take(a, 0, 0)
		value.Changes(m.Meter, x)
		x.Elems = nil
		return nil
	},
	"index": func(m *machine, x *value.List, a arguments) value.Value { return int64(listIndex(m, x, a)) },
}

func listIndex(m *machine, x *value.List, a arguments) int {
	m.take(a, 1, 1)
	i := slices.IndexFunc(x.Elems, func(v value.Value) bool { return value.Equal(m.Meter, v, a.list[0], 0) })
	if i < 0 {
		m.Fail("the list has no element %s", value.Clip(value.Str(m.Meter, a.list[0])))
	}
	return i
}

var ofDict = methods[*value.Dict]{
	"get": func(m *machine, x *value.Dict, a arguments) value.Value {
		m.take(a, 1, 2)
		if v, ok := x.Get(m.Meter, a.list[0]); ok {
			return v
		}
		return a.or(1, nil)
	},
	"keys": func(m *machine, x *value.Dict, a arguments) value.Value {
		m.take(a, 0, 0)
		return &value.List{Elems: value.Elements(m.Meter, x)}
	},
	"values": func(m *machine, x *value.Dict, a arguments) value.Value {
		m.take(a, 0, 0)
		m.Spend(len(x.Values))
		return &value.List{Elems: slices.Clone(x.Values)}
	},
	"items": func(m *machine, x *value.Dict, a arguments) value.Value {
		m.take(a, 0, 0)
		m.Spend(3 * len(x.Keys))
		out := &value.List{}
		for i, k := range x.Keys {
			out.Elems = append(out.Elems, value.Tuple{k, x.Values[i]})
		}
		return out
	},
	"pop": func(m *machine, x *value.Dict, a arguments) value.Value {
		m.take(a, 1, 2)
		v, ok := x.Remove(m.Meter, a.list[0])
		switch {
		case ok:
			return v
		case len(a.list) == 1:
			m.Fail("the dict has no key %s", value.Clip(value.Str(m.Meter, a.list[0])))
		}
		return a.list[1]
	},
	"setdefault": func(m *machine, x *value.Dict, a arguments) value.Value {
		m.take(a, 1, 2)
		if v, ok := x.Get(m.Meter, a.list[0]); ok {
			return v
		}
		x.Put(m.Meter, a.list[0], a.or(1, nil))
		return a.or(1, nil)
	},
}
