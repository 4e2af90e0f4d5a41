// An assembly file, even an empty one, lets Go accept a function without a body (since135.go).
