"""What pages draw and say, made from values: the node drawing, charts, the fleet, sentences. No queries, no templates."""
