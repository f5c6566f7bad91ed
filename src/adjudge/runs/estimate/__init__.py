"""What a run will ask and cost, estimated before anybody is asked."""
