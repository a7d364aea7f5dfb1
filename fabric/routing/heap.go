package routing

// costHeap is a binary heap, by cost, then what is to go, then channel.
// (container/heap would allocate for each item.)
type costHeap []costItem

type costItem struct {
	cost    int64
	channel int32
	toGo    int32
}

func (a costItem) before(b costItem) bool {
	if a.cost != b.cost {
		return a.cost < b.cost
	}
	if a.toGo != b.toGo {
		return a.toGo < b.toGo
	}
	return a.channel < b.channel
}

func (h *costHeap) push(x costItem) {
	*h = append(*h, x)
	list := *h
	i := len(list) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !x.before(list[parent]) {
			break
		}
		list[i] = list[parent]
		i = parent
	}
	list[i] = x
}

func (h *costHeap) pop() costItem {
	list := *h
	top, x := list[0], list[len(list)-1]
	list = list[:len(list)-1]
	*h = list
	i := 0
	for {
		child := 2*i + 1
		if child >= len(list) {
			break
		}
		if child+1 < len(list) && list[child+1].before(list[child]) {
			child++
		}
		if !list[child].before(x) {
			break
		}
		list[i] = list[child]
		i = child
	}
	if len(list) > 0 {
		list[i] = x
	}
	return top
}
