package dispatch

// Span says which part of a listing is wanted. Whatever part it is, its rows come in the order of the listing. A row is
// named by what makes it the only one of its kind, and never by a number of the store's own, so that a store that came
// back from a backup cannot take another row for it.
type Span[Name any] struct {
	// After and Before are rows that the part lies behind and ahead of; neither is in it. A store that has no such row
	// gives ErrUnknownRow.
	After, Before *Name
	// Limit is how many rows there are at most; 0 is no limit.
	Limit int
	// Last takes the last rows of the part when there are more than Limit, and not the first.
	Last bool
}

// Place names an entry among those of its tenant.
type Place struct {
	Task string `json:"task"`
	Step int    `json:"step"`
	N    int    `json:"n"`
}

// Place is where the entry stands.
func (e Entry) Place() Place { return Place{Task: e.Task.ID, Step: e.Step, N: e.N} }
