// Package jsonfile reads JSON that fabsh itself has written: plans, journals, logs, state. The
// structs that write a file declare what it may contain, and nothing else is accepted:
//
//   - Every member of every object is required, unless its tag `optional` states what a missing
//     member means, or its tag `when` (`when:"kind=round|done"`) states for which texts of another
//     member of the object it is required.
//   - Names are exact and unique. Unknown names are an error, unless Limits permits them.
//   - Numbers are whole, fit the type, are not negative, and are at most the tag `max`. A list has at
//     most `max` elements, and exactly as many as an array.
//   - null is accepted for pointers only, and for lists if Limits permits it.
//   - Bytes are base64. A type with UnmarshalText checks its text.
//
// Memory is bounded by Limits and the length of the file. Long lists are read as Rows, whose
// elements are not kept.
package jsonfile

import (
	"bytes"
	"encoding"
	"encoding/base64"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Limits are the limits of a format.
type Limits struct {
	Text int // bytes of one text in the file, with its quotes; 0: unlimited
	List int // elements of one list without the tag max; 0: unlimited
	// Unknown accepts unknown members, which a later version may have written.
	Unknown bool
	// Null accepts null in place of a list: encoding/json writes it for a nil slice.
	Null bool
}

// Format is a kind of file with the members of T. It is safe for concurrent use.
type Format[T any] struct {
	limits Limits
	value  *object
}

// New returns the format that the tags of T, a struct, declare. It panics if they are invalid.
func New[T any](limits Limits) *Format[T] {
	return &Format[T]{limits, compiler{}.object(reflect.TypeFor[T]())}
}

// Read reads a file into v, whose Rows must be set. An empty list is nil. Errors are of type *Error,
// except those of r.
func (f *Format[T]) Read(r io.Reader, v *T) error {
	return f.read(&reader{in: r, line: 1, buf: make([]byte, bufferSize)}, v)
}

// Unmarshal is Read for a text in memory of one line, such as a line of a log: its errors have no
// line.
func (f *Format[T]) Unmarshal(text []byte, v *T) error {
	err := f.read(&reader{buf: text, end: len(text)}, v)
	if e, ok := err.(*Error); ok {
		e.Line = 0
	}
	return err
}

func (f *Format[T]) read(r *reader, v *T) error {
	r.limits = f.limits
	err := f.value.read(r, reflect.ValueOf(v).Elem())
	if err == nil {
		err = r.ends()
	}
	if err == nil || r.failed != nil {
		return r.failed
	}
	e := at("", err)
	if e.Line == 0 {
		e.Line = r.line
	}
	return e
}

// Error reports what is wrong with a file.
type Error struct {
	Line int    // 0: of a text of one line
	Path string // of the member: sets[3].new; "": the whole
	Err  error
}

func (e *Error) Error() string {
	text := e.Err.Error()
	if e.Path != "" {
		text = e.Path + ": " + text
	}
	if e.Line > 0 {
		text = fmt.Sprintf("line %d: %s", e.Line, text)
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// At returns err with the name of the member that it is about. Functions of Rows use it.
func At(member string, err error) error { return at(member, err) }

// at prepends a step to the path of err.
func at(step string, err error) *Error {
	e, ok := err.(*Error)
	if !ok {
		e = &Error{Err: err}
	}
	switch {
	case e.Path == "" || step == "" || e.Path[0] == '[':
		e.Path = step + e.Path
	default:
		e.Path = step + "." + e.Path
	}
	return e
}

// Rows is a list whose elements are passed to a function one by one. The element is valid until
// the function returns; the slices in it stay valid.
type Rows[T any] func(element *T) error

// rows is implemented by all Rows.
type rows interface {
	element() reflect.Type
	row(element reflect.Value) error
}

func (Rows[T]) element() reflect.Type { return reflect.TypeFor[T]() }

func (r Rows[T]) row(element reflect.Value) error { return r(element.Addr().Interface().(*T)) }

// Former is implemented by pointers to types that are read as another struct: Form returns a
// pointer to it, and a function that then sets the receiver.
type Former interface {
	Form() (form any, set func() error)
}

// Member is a declared member of a format.
type Member struct {
	Path     string // sets[].new
	Required bool
	Optional string // what it means if it is missing
	When     string // the tag
}

// Members returns all members, those of an object after it.
func (f *Format[T]) Members() []Member { return f.value.members("", nil) }

// object is a struct.
type object struct {
	fields []field
	byName map[string]int
}

// field is a member of an object.
type field struct {
	name     string
	index    []int // in the struct, by FieldByIndex
	optional string
	when     string
	// on is the field that decides whether the member is required: if its text is one of texts.
	on    []int
	texts []string
	value value
	shape *object // of the objects in it
	list  string  // "[]" for each list around them
}

// value reads a value of one type.
type value interface {
	read(r *reader, v reflect.Value) error
}

func (o *object) members(prefix string, list []Member) []Member {
	for i := range o.fields {
		f := &o.fields[i]
		list = append(list, Member{prefix + f.name, f.optional == "" && f.when == "", f.optional, f.when})
		if f.shape != nil {
			list = f.shape.members(prefix+f.name+f.list+".", list)
		}
	}
	return list
}

func (o *object) read(r *reader, v reflect.Value) error {
	if err := r.open('{'); err != nil {
		return err
	}
	var seen uint64
	for n := 0; ; n++ {
		more, err := r.more('}', n)
		if err != nil {
			return err
		}
		if !more {
			return o.complete(v, seen)
		}
		name, err := r.text()
		if err != nil {
			return err
		}
		// Members usually come in the order of the struct.
		i := n
		if i >= len(o.fields) || o.fields[i].name != string(name) {
			known := false
			if i, known = o.byName[string(name)]; !known && !r.limits.Unknown {
				return fmt.Errorf("unknown member %.40q", name)
			} else if !known {
				i = -1
			}
		}
		if i >= 0 && seen&(1<<i) != 0 {
			return fmt.Errorf("duplicate %.40q", name)
		}
		if err := r.colon(); err != nil {
			return err
		}
		if i < 0 {
			if err := r.skip(0); err != nil {
				return err
			}
			continue
		}
		seen |= 1 << i
		f := &o.fields[i]
		if err := f.value.read(r, v.FieldByIndex(f.index)); err != nil {
			return at(f.name, err)
		}
	}
}

// complete returns an error if a required member was not seen. Others that were not seen are zero.
func (o *object) complete(v reflect.Value, seen uint64) error {
	if seen == 1<<len(o.fields)-1 {
		return nil
	}
	var missing []string
	for i := range o.fields {
		f := &o.fields[i]
		if seen&(1<<i) != 0 {
			continue
		}
		v.FieldByIndex(f.index).SetZero()
		if f.when != "" && slices.Contains(f.texts, v.FieldByIndex(f.on).String()) || f.when == "" && f.optional == "" {
			missing = append(missing, strconv.Quote(f.name))
		}
	}
	if missing == nil {
		return nil
	}
	return fmt.Errorf("missing %s", strings.Join(missing, ", "))
}

// compiler makes values of types. around are the structs in which a type is.
type compiler struct{ around []reflect.Type }

func (c compiler) object(t reflect.Type) *object {
	if t.Kind() != reflect.Struct || slices.Contains(c.around, t) {
		panic(fmt.Sprintf("jsonfile: %v: want a struct that does not contain itself", t))
	}
	c.around = append(c.around[:len(c.around):len(c.around)], t)
	o := &object{byName: map[string]int{}}
	for _, sf := range reflect.VisibleFields(t) { // also those of embedded structs
		name, options, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if name == "-" || sf.Anonymous && name == "" && sf.Type.Kind() == reflect.Struct {
			continue
		}
		f := field{name: name, index: sf.Index, optional: sf.Tag.Get("optional"), when: sf.Tag.Get("when")}
		switch {
		case name == "" || !sf.IsExported():
			panic(fmt.Sprintf("jsonfile: %v.%s: not exported, or without a name", t, sf.Name))
		case strings.Contains(options, "omit") && f.optional == "" && f.when == "":
			panic(fmt.Sprintf("jsonfile: %v.%s: a member that may be omitted needs the tag optional or when", t, sf.Name))
		}
		limit := ^uint64(0)
		if text := sf.Tag.Get("max"); text != "" {
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				panic(fmt.Sprintf("jsonfile: %v.%s: max: %v", t, sf.Name, err))
			}
			limit = n
		}
		f.value = c.value(sf.Type, limit, &f)
		o.byName[name] = len(o.fields)
		o.fields = append(o.fields, f)
	}
	if len(o.fields) == 0 || len(o.fields) > 63 || len(o.byName) < len(o.fields) {
		panic(fmt.Sprintf("jsonfile: %v: want 1 to 63 members with unique names", t))
	}
	for i := range o.fields {
		f := &o.fields[i]
		if f.when == "" {
			continue
		}
		name, texts, _ := strings.Cut(f.when, "=")
		on, ok := o.byName[name]
		if !ok || t.FieldByIndex(o.fields[on].index).Type.Kind() != reflect.String {
			panic(fmt.Sprintf("jsonfile: %v: when:%q: want the name of a text and its values", t, f.when))
		}
		f.on, f.texts = o.fields[on].index, strings.Split(texts, "|")
	}
	return o
}

var (
	textType = reflect.TypeFor[encoding.TextUnmarshaler]()
	formType = reflect.TypeFor[Former]()
	rowsType = reflect.TypeFor[rows]()
	byteType = reflect.TypeFor[byte]()
)

// value returns what reads a type. limit is the largest number, or the largest number of elements.
// It notes in f which objects are in the value.
func (c compiler) value(t reflect.Type, limit uint64, f *field) value {
	switch {
	case reflect.PointerTo(t).Implements(formType):
		form, _ := reflect.New(t).Interface().(Former).Form()
		f.shape = c.object(reflect.TypeOf(form).Elem())
		return formed{f.shape}
	case reflect.PointerTo(t).Implements(textType):
		return text{}
	case t.Implements(rowsType):
		e := reflect.Zero(t).Interface().(rows).element()
		f.list += "[]"
		return rowList{c.value(e, ^uint64(0), f), limit}
	}
	switch t.Kind() {
	case reflect.String:
		return plainText{}
	case reflect.Bool:
		return boolean{}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return number{min(limit, 1<<(t.Bits()-1)-1), true}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return number{min(limit, ^uint64(0)>>(64-t.Bits())), false}
	case reflect.Pointer:
		return pointer{c.value(t.Elem(), limit, f)}
	case reflect.Slice:
		if t.Elem() == byteType {
			return base64Bytes{}
		}
		f.list += "[]"
		return list{c.element(t.Elem(), f), limit}
	case reflect.Array:
		f.list += "[]"
		return array{c.value(t.Elem(), limit, f)}
	case reflect.Struct:
		f.shape = c.object(t)
		return f.shape
	}
	panic(fmt.Sprintf("jsonfile: %v: unsupported type", t))
}

// element is value for the elements of a list, of which none may be null.
func (c compiler) element(t reflect.Type, f *field) value {
	if t.Kind() == reflect.Pointer {
		return allocated{c.value(t.Elem(), ^uint64(0), f)}
	}
	return c.value(t, ^uint64(0), f)
}

type (
	formed      struct{ shape *object }
	text        struct{}
	plainText   struct{}
	boolean     struct{}
	base64Bytes struct{}
	pointer     struct{ to value }
	allocated   struct{ to value }
	array       struct{ of value }
	number      struct {
		limit  uint64
		signed bool
	}
	list struct {
		of    value
		limit uint64
	}
	rowList struct {
		of    value
		limit uint64
	}
)

func (x formed) read(r *reader, v reflect.Value) error {
	form, set := v.Addr().Interface().(Former).Form()
	if err := x.shape.read(r, reflect.ValueOf(form).Elem()); err != nil {
		return err
	}
	return set()
}

func (text) read(r *reader, v reflect.Value) error {
	b, err := r.text()
	if err != nil {
		return err
	}
	return v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText(b)
}

func (plainText) read(r *reader, v reflect.Value) error {
	b, err := r.text()
	v.SetString(string(b))
	return err
}

func (boolean) read(r *reader, v reflect.Value) error {
	b, err := r.bool()
	v.SetBool(b)
	return err
}

func (x number) read(r *reader, v reflect.Value) error {
	n, err := r.number(x.limit)
	if err != nil {
		return err
	}
	if x.signed {
		v.SetInt(int64(n))
	} else {
		v.SetUint(n)
	}
	return nil
}

func (base64Bytes) read(r *reader, v reflect.Value) error {
	if null, err := r.null(r.limits.Null); null || err != nil {
		v.SetZero()
		return err
	}
	b, err := r.text()
	if err != nil {
		return err
	}
	data := make([]byte, base64.StdEncoding.DecodedLen(len(b)))
	n, bad := base64.StdEncoding.Strict().Decode(data, b)
	if bad != nil || n == 0 || bytes.ContainsAny(b, "\r\n") {
		return fmt.Errorf("got %.40q, want bytes in base64", b)
	}
	v.SetBytes(data[:n:n])
	return nil
}

func (x pointer) read(r *reader, v reflect.Value) error {
	if null, err := r.null(true); null || err != nil {
		v.SetZero()
		return err
	}
	if v.IsNil() {
		v.Set(reflect.New(v.Type().Elem()))
	}
	return x.to.read(r, v.Elem())
}

func (x allocated) read(r *reader, v reflect.Value) error {
	v.Set(reflect.New(v.Type().Elem()))
	return x.to.read(r, v.Elem())
}

// elements calls read for each element of a list. Its errors have the number of the element.
func elements(r *reader, limit uint64, read func(n int) error) error {
	if limit == ^uint64(0) && r.limits.List > 0 {
		limit = uint64(r.limits.List)
	}
	if err := r.open('['); err != nil {
		return err
	}
	for n := 0; ; n++ {
		more, err := r.more(']', n)
		if err != nil || !more {
			return err
		}
		if uint64(n) == limit {
			return fmt.Errorf("more than %d elements", limit)
		}
		if err := read(n); err != nil {
			return at("["+strconv.Itoa(n)+"]", err)
		}
	}
}

func (x list) read(r *reader, v reflect.Value) error {
	v.SetZero()
	if null, err := r.null(r.limits.Null); null || err != nil {
		return err
	}
	return elements(r, x.limit, func(n int) error {
		if n == v.Cap() {
			v.Grow(1)
		}
		v.SetLen(n + 1)
		return x.of.read(r, v.Index(n))
	})
}

func (x array) read(r *reader, v reflect.Value) error {
	n := 0
	err := elements(r, uint64(v.Len()), func(i int) error {
		n++
		return x.of.read(r, v.Index(i))
	})
	if err == nil && n < v.Len() {
		err = fmt.Errorf("%d elements, want %d", n, v.Len())
	}
	return err
}

func (x rowList) read(r *reader, v reflect.Value) error {
	to := v.Interface().(rows)
	element := reflect.New(to.element()).Elem()
	return elements(r, x.limit, func(int) error {
		element.SetZero()
		if err := x.of.read(r, element); err != nil {
			return err
		}
		return to.row(element)
	})
}
